export { archiveOf, noProof, readArchive, type SealedParts, type SnapshotMeta, sumsOf, unusableSnapshot } from './archive.ts';
