export { makeDirectory, syncDirectory } from './directories.ts';
export { lockDirectory } from './directory/directory-lock.ts';
export type { Disk } from './directory/disk.ts';
export { DiskReserve, type DiskReserveOptions, type DiskSpace, isCapped, reserveIn } from './directory/disk-reserve.ts';
export { createNode, hasNode, type LockedDirectory, lockNodeDirectory, type NewNode } from './directory/node-directory.ts';
export { type PolicyRule, Refusal, type RefusedBy, StorageDamaged, StorageFailed, StorageInUse } from './errors.ts';
export { armFailpoints, type FailpointName, failpoint } from './failpoint.ts';
export {
  type FeatureLevel,
  featureLevels,
  hasFeature,
  type LevelRange,
  requireSupported,
  supportedLevels,
  UnsupportedLevel,
} from './level/feature-levels.ts';
export type { SegmentLogOptions } from './log/open-log.ts';
export { SegmentLog } from './log/segment-log.ts';
export { NodeSnapshots, type NodeSnapshotsOptions } from './snapshot/node-snapshots.ts';
export { type RecordsOfState, snapshotOfRecords } from './snapshot/records-snapshot.ts';
export { LogUnreadable, type RecoveredState, type RecoveryOptions, withRecoveredState } from './snapshot/recovered-state.ts';
export {
  clearRestores,
  inspectSnapshot,
  type RestorableTotals,
  type RestoreOptions,
  type RestoreOutcome,
  recordsOfSnapshot,
  restorableTotals,
  restoreSnapshot,
  type SnapshotSummary,
} from './snapshot/restore.ts';
export type { SnapshotLink } from './snapshot/snapshot-fetch.ts';
export { readSnapshotFile, writeSnapshotFile } from './snapshot/snapshot-file.ts';
export type { AppliedEntry, AppliedObserver } from './state/applied-entry.ts';
export { KeyValueMachine, type KeyValueMachineOptions } from './state/key-value-machine.ts';
export { type Consensus, LocalReplica } from './state/local-replica.ts';
export type { ReplicatedSnapshot } from './state/replicated-snapshot.ts';
export type { StateMeta } from './state/state-record.ts';
export { decodeCommand, decodeTransaction, encodeCommand, encodeTransaction, transactionBytesMax } from './store/codec.ts';
export { addToDigest, emptyDigest, recordDigest } from './store/digest.ts';
export { decodeFields, fieldsIn, hasFields, isCount, type JsonFields, jsonIn } from './store/json-object.ts';
export { JsonRecord } from './store/json-record.ts';
export { type MemoryStoreOptions, memoryStore } from './store/memory-store.ts';
export { comparePaths, pathBytesMax, pathFault } from './store/path.ts';
export { mergePathPages } from './store/path-page.ts';
export { checkQuery, pageBytesMax, pageRecordsMax, type Row, takePage } from './store/range.ts';
export { namesBelow, pagesBelow } from './store/read-all.ts';
export { encodedWrites, readReplicatedWrites } from './store/replication-codec.ts';
export {
  acceptsWrites,
  type Cursor,
  continues,
  cursorOf,
  type Epoch,
  type EpochName,
  epochsFault,
  epochsMax,
  isEpochId,
  isForeignIndex,
  isIndex,
  isLocal,
  positionOf,
  type ReplicationRole,
  type ReplicationState,
  type ServiceIndex,
  sameEpoch,
  takesPart,
} from './store/replication-state.ts';
export type { ReplicatedRecord, ReplicatedWrite, ReplicationStep } from './store/replication-step.ts';
export type { RestoredRecord, RestoreStep } from './store/restore-step.ts';
export { countWhile } from './store/sorted.ts';
export * from './store/store.ts';
export * from './store/transaction.ts';
export { changeRecords, untilCommitted } from './store/until-committed.ts';
export { Watchers } from './store/watchers.ts';
export type { Condition, Write } from './store/write.ts';
