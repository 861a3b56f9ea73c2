import type { EtcdReplica } from '@transitd/storage-etcd';
import { snapshotOfRecords } from '@transitd/storage-fsm';
import type { SnapshotEngine } from '../snapshots/snapshot-engine.ts';

/**
 * Returns backups and restores over etcd. A restore keeps nothing: the nodes certify themselves with the authority of the restored state,
 * as they do after each start.
 */
export const etcdSnapshots = (replica: EtcdReplica): SnapshotEngine => ({
  replica,
  get featureLevel() {
    return replica.featureLevel;
  },
  set: undefined,
  keep: [],
  diskLow: () => false,
  backup: async () => {
    await replica.fresh();
    return snapshotOfRecords(replica.state());
  },
  clearLeftovers: (underWay) => replica.clearRestores(underWay),
});
