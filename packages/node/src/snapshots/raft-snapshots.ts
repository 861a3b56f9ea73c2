import { setTimeout as pause } from 'node:timers/promises';
import { authorityPath, type Storage } from '@transitd/cluster';
import { clearRestores, StoreError, takesPart } from '@transitd/storage-fsm';
import type { SnapshotEngine } from './snapshots.ts';

/** Maximum wait until applied entries are flushed to disk. */
const flushWithinMs = 10_000;
const pollMs = 20;

/**
 * Returns backups and restores over Raft: a backup is made of the flushed records, and a restore goes through the log.
 * @param kept - as in `ReplicationSet`
 */
export const raftSnapshots = (storage: Storage, kept: readonly string[]): SnapshotEngine => ({
  replica: storage.replica,
  get featureLevel() {
    return storage.featureLevel;
  },
  get set() {
    const { replication: state, applied } = storage.machine;
    return state !== undefined && takesPart(state) ? { state, appliedIndex: applied.appliedIndex, kept } : undefined;
  },
  // The authority belongs to the cluster, not to its state, and no node could join without it. Paths below it, such as that of the next
  // authority in a rotation, are kept too.
  keep: [authorityPath],
  diskLow: () => storage.diskLow(),
  backup: async () => {
    await waitForFlush(storage);
    return storage.snapshots.backup();
  },
  clearLeftovers: async (underWay) => {
    await clearRestores(storage.replica, storage.machine, underWay === undefined ? {} : { underWay });
  },
});

async function waitForFlush({ driver }: Storage): Promise<void> {
  const { appliedIndex } = driver.status();
  for (const endMs = performance.now() + flushWithinMs; driver.status().flushedIndex < appliedIndex; await pause(pollMs))
    if (performance.now() > endMs) throw new StoreError('busy', 'the state is not on disk yet; try again later');
}
