import { featureLevels, hasFeature, type ReplicationState, StoreError } from '@transitd/storage-fsm';
import type { ReplicationParts } from './replication-parts.ts';
import { ReplicationRefused } from './replication-refused.ts';

/** Checks that this node is the active one, of a cluster that may replicate. @throws ReplicationRefused `level`; StoreError `not_leader` */
export function requireUsable({ storage, isActive }: Pick<ReplicationParts, 'storage' | 'isActive'>): void {
  if (!isActive()) throw new StoreError('not_leader', 'this node is not the active one');
  const level = storage.machine.featureLevel;
  if (!hasFeature(level, 'replication'))
    throw new ReplicationRefused(
      'level',
      `replication needs feature level ${featureLevels.replication}, and the cluster is at level ${level}: ` +
        'upgrade all nodes and raise the feature level',
    );
}

/** Returns the state of a cluster in this role. @throws as {@link requireUsable} does; ReplicationRefused `wrong_mode` */
export function requireRole(
  parts: Pick<ReplicationParts, 'storage' | 'isActive'>,
  role: ReplicationState['role'],
): ReplicationState {
  requireUsable(parts);
  const state = parts.storage.machine.replication;
  if (state?.role !== role) throw new ReplicationRefused('wrong_mode', `this cluster is not a ${role}`);
  return state;
}
