import { type Peers, replicationModes } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import {
  defaultCodes,
  type HealthAnswer,
  type HealthQuery,
  healthAnswer,
  type NodeStatus,
  type ReplicationModes,
} from '@transitd/health';
import { version } from '@transitd/process';
import type { ReplicationState } from '@transitd/storage-fsm';
import type { ReadEligibility } from './read-eligibility.ts';
import type { Services } from './services.ts';

/** A health query without parameters. */
const plainHealth: HealthQuery = { standbyOk: false, performanceStandbyOk: false, codes: defaultCodes };

/** Returns the answer to a health query without parameters. */
export const healthNow = (status: NodeStatus): HealthAnswer =>
  healthAnswer(status, plainHealth, { monotonicMs: performance.now(), utcMs: Date.now() });

/** The state of a node that its status depends on. */
export interface ReportedState {
  readonly config: Config;
  readonly clusterName: { readonly id: string; readonly name: string } | undefined;
  readonly removed: boolean;
  readonly initialized: boolean;
  readonly services: Services | undefined;
  readonly commitIndex: number;
  readonly peers: Pick<Peers, 'canaryUtcMs' | 'heartbeats'> | undefined;
  readonly eligibility: Pick<ReadEligibility, 'activeForCertain' | 'appliedSentMs' | 'replication'>;
  /** Why the provider of the seal fails, such as `unreachable`; undefined while it serves. */
  readonly sealFailure: string | undefined;
}

/** Returns the status that health reports, from the node's present state. */
export function nodeStatus(state: ReportedState): NodeStatus {
  const { config, clusterName, services, peers, eligibility, sealFailure } = state;
  const common = { version, ...(clusterName && { cluster: clusterName }) };
  if (state.removed) return { state: 'removed', ...common };
  if (!state.initialized) return { state: 'uninitialized', ...common };
  const canaryUtcMs = peers?.canaryUtcMs;
  const canary = canaryUtcMs === undefined ? {} : { canaryUtcMs };
  const replication = replicationModes(eligibility.replication);
  if (services !== undefined && eligibility.activeForCertain) {
    const active = activeStatus({ ...state, cluster: clusterName, replication: eligibility.replication });
    return follows(replication) ? { ...active, state: 'dr_active', ...canary } : active;
  }
  const intervalMs = config.cluster_heartbeat_interval;
  // A node without peers sends no heartbeats. If it does not lead, it soon reports that it is cut off; sealed, it counts from its start.
  const heartbeats = peers?.heartbeats.times ?? { intervalMs, sinceMs: services?.sinceMs ?? 0, durationMs: 0, clockSkewMs: 0 };
  if (services === undefined)
    return { state: 'sealed', ...common, heartbeats, ...(sealFailure !== undefined && { sealFailure }) };
  const standby = { ...common, heartbeats, ...canary };
  if (follows(replication) || follows(heartbeats.replication)) return { state: 'dr_standby', ...standby };
  const { appliedSentMs } = eligibility;
  return appliedSentMs === undefined
    ? { state: 'standby', ...standby }
    : { state: 'performance_standby', appliedSentMs, ...standby };
}

/** Returns the status of the active node of a cluster that serves clients. */
export function activeStatus({
  config,
  cluster,
  commitIndex,
  replication,
}: Pick<ReportedState, 'config' | 'commitIndex'> & {
  readonly cluster: ReportedState['clusterName'];
  readonly replication: ReplicationState | undefined;
}): Extract<NodeStatus, { state: 'active' }> {
  const license = config.license && { expiryUtcMs: config.license.expiry_time };
  return {
    state: 'active',
    version,
    ...(cluster && { cluster }),
    replication: replicationModes(replication),
    lastWal: commitIndex,
    ...(license && { license }),
  };
}

/** Returns the id and the name of a cluster. */
export const clusterNamed = (id: string): { readonly id: string; readonly name: string } => ({
  id,
  name: `transitd-${id.slice(0, 8)}`,
});

/** Whether a cluster serves no clients because of these modes. A standby that lags knows them from the active node first. */
const follows = (modes: ReplicationModes | undefined): boolean =>
  modes?.disasterRecovery === 'secondary' || modes?.disasterRecovery === 'bootstrapping';
