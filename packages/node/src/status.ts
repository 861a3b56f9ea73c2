import type { ProviderHealth } from '@transitd/barrier';
import { type Peers, replicationModes } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import {
  defaultCodes,
  type HealthAnswer,
  type HealthQuery,
  type HeartbeatTimes,
  healthAnswer,
  type NodeStatus,
  type ReplicationModes,
} from '@transitd/health';
import { version } from '@transitd/process';
import type { ReplicationState } from '@transitd/storage-fsm';
import type { MemberSeal } from './member-seal.ts';
import type { ReadEligibility } from './read-eligibility.ts';
import type { ServiceLoader } from './service-loader.ts';

/** The id of a cluster, and its name. */
export type ClusterName = NonNullable<NodeStatus['cluster']>;

/** A health query without parameters. */
const plainHealth: HealthQuery = { standbyOk: false, performanceStandbyOk: false, codes: defaultCodes };

/** Returns the answer to a health query without parameters. */
export const healthNow = (status: NodeStatus): HealthAnswer =>
  healthAnswer(status, plainHealth, { monotonicMs: performance.now(), utcMs: Date.now() });

/** A member, as far as its status depends on it. */
export interface ReportedState {
  readonly clusterName: ClusterName | undefined;
  readonly removed: boolean;
  readonly isInitialized: boolean;
  readonly services: Pick<ServiceLoader, 'services'>;
  readonly seal: Pick<MemberSeal, 'providerHealth'>;
  readonly replica: { status(): { readonly commitIndex: number } };
  readonly peers: Pick<Peers, 'canaryUtcMs' | 'heartbeats'>;
  readonly eligibility: Pick<ReadEligibility, 'activeForCertain' | 'appliedSentMs' | 'replication'>;
}

/** Returns the status that health reports, from the member's present state. */
export function nodeStatus(member: ReportedState, config: Config): NodeStatus {
  const { clusterName, peers, eligibility } = member;
  const { services } = member.services;
  const common = { version, ...(clusterName && { cluster: clusterName }) };
  if (member.removed) return { state: 'removed', ...common };
  if (!member.isInitialized) return { state: 'uninitialized', ...common };
  const { canaryUtcMs } = peers;
  const canary = canaryUtcMs === undefined ? {} : { canaryUtcMs };
  const { replication } = eligibility;
  const modes = replicationModes(replication);
  if (services !== undefined && eligibility.activeForCertain) {
    const { commitIndex } = member.replica.status();
    const active = activeStatus({ config, cluster: clusterName, commitIndex, replication });
    return follows(modes) ? { ...active, state: 'dr_active', ...canary } : active;
  }
  const heartbeats = peers.heartbeats.times;
  if (services === undefined) return sealedStatus(common, { heartbeats, health: member.seal.providerHealth });
  const standby = { ...common, heartbeats, ...canary };
  if (follows(modes) || follows(heartbeats.replication)) return { state: 'dr_standby', ...standby };
  const { appliedSentMs } = eligibility;
  return appliedSentMs === undefined
    ? { state: 'standby', ...standby }
    : { state: 'performance_standby', appliedSentMs, ...standby };
}

/** Returns the status of a sealed node. @param health - of the provider of its seal, if it has one */
export function sealedStatus(
  common: { readonly version: string; readonly cluster?: ClusterName },
  { heartbeats, health }: { readonly heartbeats: HeartbeatTimes; readonly health: ProviderHealth | undefined },
): NodeStatus {
  return { state: 'sealed', ...common, heartbeats, ...(health?.failure !== undefined && { sealFailure: health.failure }) };
}

/** Returns the times of a node that sends no heartbeats. @param sinceMs - when it began to serve, or 0 */
export const unsentHeartbeats = (intervalMs: number, sinceMs: number): HeartbeatTimes => ({
  ...{ intervalMs, sinceMs, durationMs: 0, clockSkewMs: 0 },
});

/** Returns the status of the active node of a cluster that serves clients. */
export function activeStatus({
  config,
  cluster,
  commitIndex,
  replication,
}: {
  readonly config: Config;
  readonly cluster: ClusterName | undefined;
  readonly commitIndex: number;
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

export const clusterNamed = (id: string): ClusterName => ({
  id,
  name: `transitd-${id.slice(0, 8)}`,
});

/** Whether a cluster serves no clients because of these modes. A standby that lags knows them from the active node first. */
const follows = (modes: ReplicationModes | undefined): boolean =>
  modes?.disasterRecovery === 'secondary' || modes?.disasterRecovery === 'bootstrapping';
