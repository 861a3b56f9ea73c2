import { ReplicationError } from '@transitd/replication';
import { type ReplicationState, StoreError } from '@transitd/storage-fsm';
import type { ReplicationParts } from './replication-parts.ts';

/** Checks that this node is the active one. @throws StoreError `not_leader` */
export function requireActive({ role }: Pick<ReplicationParts, 'role'>): void {
  if (!role.isActive) throw new StoreError('not_leader', 'this node is not the active one');
}

/** Returns the state of a cluster in this role. @throws as {@link requireActive} does; ReplicationError `wrong_mode` */
export function requireRole(parts: Pick<ReplicationParts, 'storage' | 'role'>, role: ReplicationState['role']): ReplicationState {
  requireActive(parts);
  const state = parts.storage.machine.replication;
  if (state?.role !== role) throw new ReplicationError('wrong_mode', `this cluster is not a ${role}`);
  return state;
}
