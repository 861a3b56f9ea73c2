export { transactionBytesMax } from './codec.ts';
export { StorageDamaged } from './damage.ts';
export { type Disk, syncDirectory } from './disk.ts';
export { DiskReserve, type DiskReserveOptions, growthBytesLeast } from './disk-reserve.ts';
export { armFailpoints, type FailpointName, failpoint } from './failpoint.ts';
export { type Consensus, LocalReplica, type LocalReplicaParts } from './local-replica.ts';
export { type MemoryStoreOptions, memoryStore } from './memory-store.ts';
export { createNode, hasNode, type LockedDirectory, lockNodeDirectory, type NewNode } from './node-directory.ts';
export { NodeSnapshots, type NodeSnapshotsOptions } from './node-snapshots.ts';
export type { SegmentLogOptions } from './open-log.ts';
export { pathBytesMax, pathFault } from './path.ts';
export { LogUnreadable, type RecoveredState, type RecoveryOptions, withRecoveredState } from './recovered-state.ts';
export {
  clearRestores,
  inspectSnapshot,
  type RestoreOptions,
  type RestoreOutcome,
  recordsOfSnapshot,
  restoreSnapshot,
  type SnapshotSummary,
} from './restore.ts';
export type { RestoredRecord, RestoreStep } from './restore-step.ts';
export { SegmentLog } from './segment-log.ts';
export type { SnapshotLink } from './snapshot-fetch.ts';
export { readSnapshotFile, writeSnapshotFile } from './snapshot-file.ts';
export { KeyValueMachine, type KeyValueMachineOptions } from './state-machine.ts';
export type { StateMeta } from './state-record.ts';
export { StorageFailed, StorageInUse } from './storage-errors.ts';
export * from './store.ts';
export * from './transaction.ts';
