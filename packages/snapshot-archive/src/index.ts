export { archiveOf, garbage, noProof, readArchive, type SealedParts, type SnapshotMeta, sumsOf } from './archive.ts';
