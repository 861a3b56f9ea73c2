export {
  archiveOf,
  noProof,
  readArchive,
  type SealedParts,
  SnapshotError,
  type SnapshotMeta,
  sumsOf,
  unusableSnapshot,
} from './archive.ts';
