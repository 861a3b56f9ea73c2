import type { HealthQuery } from './health-query.ts';
import { type HeartbeatTimes, isFresh, type NodeStatus, type ReplicationMode, type ReplicationModes } from './node-status.ts';

/** The present time by two clocks, in milliseconds: the monotonic clock of the heartbeats, and UTC. */
export interface Moment {
  readonly monotonicMs: number;
  readonly utcMs: number;
}

/** The body of `/sys/health`, with its fields in the order of the response. It has no envelope. */
export interface HealthReport {
  readonly initialized: boolean;
  readonly sealed: boolean;
  /** Whether this is not the active node; true before unseal as well. */
  readonly standby: boolean;
  readonly replication_performance_mode: ReplicationMode;
  readonly replication_dr_mode: ReplicationMode;
  readonly server_time_utc: number;
  readonly version: string;
  /** Empty until the node has joined a cluster; so is `cluster_id`. */
  readonly cluster_name: string;
  readonly cluster_id: string;
  readonly performance_standby: boolean;
  readonly enterprise: true;
  readonly echo_duration_ms: number;
  readonly clock_skew_ms: number;
  readonly replication_primary_canary_age_ms: number;
  readonly removed_from_cluster?: boolean;
  readonly ha_connection_healthy?: boolean;
  readonly last_request_forwarding_heartbeat_ms?: number;
  /** Why the provider of the seal does not open it; only while the node is sealed for that reason. */
  readonly seal_failure?: string;
  readonly last_wal?: number;
  readonly license?: { readonly expiry_time: string; readonly state: 'autoloaded'; readonly terminated: boolean };
}

export interface HealthAnswer {
  readonly code: number;
  readonly body: HealthReport;
}

/** The state of the node at a given time. It is lower than the node's status if the heartbeats are no longer fresh. */
type Condition =
  | 'uninitialized'
  | 'removed'
  | 'sealed'
  | 'ha_unhealthy'
  | 'dr_secondary'
  | 'performance_standby'
  | 'standby'
  | 'active';

/**
 * Returns the response to `GET /sys/health`. The first match wins: not initialized, removed (before sealed, because a removed node
 * seals itself), sealed, no contact with the active node, disaster recovery secondary, performance standby, standby, active.
 */
export function healthAnswer(status: NodeStatus, query: HealthQuery, now: Moment): HealthAnswer {
  const condition = conditionOf(status, now.monotonicMs);
  return { code: codeFor(condition, query), body: report(status, condition, now) };
}

/** Returns the text of the response body: JSON and a newline. */
export const healthResponseText = ({ body }: HealthAnswer): string => `${JSON.stringify(body)}\n`;

function conditionOf(status: NodeStatus, monotonicMs: number): Condition {
  switch (status.state) {
    case 'uninitialized':
    case 'removed':
    case 'sealed':
    case 'active':
      return status.state;
    case 'dr_active':
      return 'dr_secondary';
    case 'dr_standby':
      return inContact(status.heartbeats, monotonicMs) ? 'dr_secondary' : 'ha_unhealthy';
    case 'standby':
      return inContact(status.heartbeats, monotonicMs) ? 'standby' : 'ha_unhealthy';
    case 'performance_standby':
      if (!inContact(status.heartbeats, monotonicMs)) return 'ha_unhealthy';
      return isFresh(status.appliedSentMs, status.heartbeats.intervalMs, monotonicMs) ? 'performance_standby' : 'standby';
  }
}

/** Before the first answered heartbeat, the time of unseal counts, so that a node that never finds an active node reports that too. */
const lastContactMs = ({ answeredSentMs, sinceMs }: HeartbeatTimes): number => answeredSentMs ?? sinceMs;
const inContact = (heartbeats: HeartbeatTimes, monotonicMs: number): boolean =>
  isFresh(lastContactMs(heartbeats), heartbeats.intervalMs, monotonicMs);

function codeFor(condition: Condition, { standbyOk, performanceStandbyOk, codes }: HealthQuery): number {
  switch (condition) {
    case 'uninitialized':
      return codes.uninitcode;
    case 'removed':
      return codes.removedcode;
    case 'sealed':
      return codes.sealedcode;
    case 'ha_unhealthy':
      return codes.haunhealthycode;
    case 'dr_secondary':
      return codes.drsecondarycode;
    case 'performance_standby':
      return performanceStandbyOk ? codes.activecode : codes.performancestandbycode;
    case 'standby':
      return standbyOk ? codes.activecode : codes.standbycode;
    case 'active':
      return codes.activecode;
  }
}

function report(status: NodeStatus, condition: Condition, now: Moment): HealthReport {
  const { state, version, cluster } = status;
  const heartbeats = 'heartbeats' in status ? status.heartbeats : undefined;
  const modes = replicationOf(status, condition);
  return {
    initialized: state !== 'uninitialized',
    sealed: state === 'uninitialized' || state === 'removed' || state === 'sealed',
    standby: state !== 'active' && state !== 'dr_active',
    replication_performance_mode: modes.performance,
    replication_dr_mode: modes.disasterRecovery,
    server_time_utc: Math.floor(now.utcMs / 1000),
    version,
    cluster_name: cluster?.name ?? '',
    cluster_id: cluster?.id ?? '',
    performance_standby: condition === 'performance_standby',
    enterprise: true,
    echo_duration_ms: Math.round(heartbeats?.durationMs ?? 0),
    clock_skew_ms: Math.round(heartbeats?.clockSkewMs ?? 0),
    replication_primary_canary_age_ms: canaryAgeMs(status, now),
    ...(state === 'removed' && { removed_from_cluster: true }),
    ...(heartbeats && heartbeat(heartbeats, now.monotonicMs)),
    ...(status.state === 'sealed' && status.sealFailure !== undefined && { seal_failure: status.sealFailure }),
    ...('lastWal' in status && activeOnly(status, now)),
  };
}

const unknown: ReplicationModes = { performance: 'unknown', disasterRecovery: 'unknown' };
const disabled: ReplicationModes = { performance: 'disabled', disasterRecovery: 'disabled' };

/**
 * Returns the replication modes. An unsealed standby reports what the active node sent; without contact it reports `unknown`. A standby
 * that knows by its own state that the cluster is a secondary does not wait for the active node to say so.
 */
function replicationOf(status: NodeStatus, condition: Condition): ReplicationModes {
  if (condition === 'ha_unhealthy' || condition === 'sealed') return unknown;
  const reported =
    'heartbeats' in status ? status.heartbeats.replication : 'lastWal' in status ? (status.replication ?? disabled) : undefined;
  const isKnown = condition !== 'dr_secondary' || reported?.disasterRecovery === 'bootstrapping';
  return isKnown ? (reported ?? unknown) : { ...(reported ?? unknown), disasterRecovery: 'secondary' };
}

/** Returns the canary age, which includes replication lag and clock skew, so it may be negative. */
const canaryAgeMs = (status: NodeStatus, { utcMs }: Moment): number =>
  'canaryUtcMs' in status && status.canaryUtcMs !== undefined ? Math.round(utcMs - status.canaryUtcMs) : 0;

/** Returns the heartbeat fields, zeros included. Every member that is not active reports them, whether sealed or not. */
const heartbeat = (heartbeats: HeartbeatTimes, monotonicMs: number) => ({
  removed_from_cluster: false,
  ha_connection_healthy: heartbeats.answeredSentMs !== undefined && inContact(heartbeats, monotonicMs),
  last_request_forwarding_heartbeat_ms: Math.max(0, Math.round(monotonicMs - lastContactMs(heartbeats))),
});

const activeOnly = ({ lastWal, license }: Extract<NodeStatus, { lastWal: number }>, { utcMs }: Moment) => ({
  last_wal: lastWal,
  ...(license && {
    license: {
      expiry_time: new Date(license.expiryUtcMs).toISOString(),
      state: 'autoloaded' as const,
      terminated: utcMs >= license.expiryUtcMs,
    },
  }),
});
