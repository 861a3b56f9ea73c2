import type { ReplicationMode, ReplicationModes } from '@transitd/health';
import type { ReplicationState } from '@transitd/storage-fsm';

/**
 * Returns the replication modes of a cluster as clients know them. A cluster that was demoted or superseded serves no clients, like a
 * secondary; one that has not received a state yet is `bootstrapping`.
 */
export const replicationModes = (state: ReplicationState | undefined): ReplicationModes => ({
  performance: 'disabled',
  disasterRecovery: modeOf(state),
});

function modeOf(state: ReplicationState | undefined): ReplicationMode {
  if (state === undefined || state.role === 'disabled') return 'disabled';
  if (state.role === 'primary') return 'primary';
  return state.epochs.length === 0 ? 'bootstrapping' : 'secondary';
}
