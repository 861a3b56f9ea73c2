export {
  archiveOf,
  noProof,
  readArchive,
  type SealedParts,
  SnapshotError,
  type SnapshotMeta,
  type SnapshotParts,
  sumsOf,
  unusableSnapshot,
} from './archive.ts';
