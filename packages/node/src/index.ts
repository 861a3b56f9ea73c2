export type { TokenManagedKeys } from './mounts/managed-keys.ts';
export { type MountTuning, mountAt } from './mounts/mount-changes.ts';
export { sweepRemovedMounts } from './mounts/mount-sweep.ts';
export { type Mount, recordsOf } from './mounts/mounts.ts';
export { Node } from './node.ts';
export type { ReadEligibility, ReadRole } from './read-eligibility.ts';
export type { Services } from './services.ts';
export { withRecovery } from './snapshots/recovery.ts';
export type { Snapshots } from './snapshots/snapshots.ts';
