/** A replication mode of a cluster; `unknown` on a standby until the active node has sent it. */
export type ReplicationMode = 'disabled' | 'primary' | 'secondary' | 'bootstrapping' | 'unknown';

export interface ReplicationModes {
  readonly performance: ReplicationMode;
  readonly disasterRecovery: ReplicationMode;
}

export interface Cluster {
  readonly id: string;
  readonly name: string;
}

/** Properties of a node that are known in every state. */
interface Identity {
  /** Release of the server. */
  readonly version: string;
  /** Absent until the node has joined a cluster; present while it is sealed. */
  readonly cluster?: Cluster;
}

/**
 * The heartbeats that a member sends to the active node while it is not active itself, whether sealed or not. Times are readings of one
 * monotonic clock, in milliseconds. Only answered heartbeats count, and their age is measured from when they were sent: an answer that
 * waited in a buffer must not look fresh.
 */
export interface HeartbeatTimes {
  readonly intervalMs: number;
  /** When the node last started, was sealed, was unsealed or stopped being active; used until the first answered heartbeat. */
  readonly sinceMs: number;
  /** When the newest answered heartbeat was sent; absent before the first answer. */
  readonly answeredSentMs?: number;
  /** Duration of the latest heartbeat, also if it failed; 0 before the first. */
  readonly durationMs: number;
  /** The active node's clock minus this node's clock, with an uncertainty of `durationMs`; 0 after a failed heartbeat. */
  readonly clockSkewMs: number;
  /** The replication modes in the answer to the newest answered heartbeat. */
  readonly replication?: ReplicationModes;
}

interface Standby extends Identity {
  readonly heartbeats: HeartbeatTimes;
  /** UTC time, in milliseconds, in the newest canary record that this node has applied. */
  readonly canaryUtcMs?: number;
}

interface Active extends Identity {
  /** The commit index. */
  readonly lastWal: number;
  readonly replication?: ReplicationModes;
  /** Present if the operator configured a license. */
  readonly license?: { readonly expiryUtcMs: number };
}

/**
 * The status of a node. Each state has only the properties that are possible in it, so the type excludes a sealed active node and a
 * performance standby without heartbeats.
 *
 * - `sealed`: `sealFailure` says why the provider of the seal does not open it, such as `unreachable`; absent while it serves
 * - `standby`: unsealed and not active; forwards every request
 * - `performance_standby`: may serve reads while `appliedSentMs` is fresh: the time when this node sent the newest answered heartbeat
 *   whose commit index it has applied
 * - `dr_standby`, `dr_active`: members of a cluster that follows another cluster for disaster recovery; a canary record is the primary's
 */
export type NodeStatus =
  | ({ readonly state: 'uninitialized' } & Identity)
  | ({ readonly state: 'removed' } & Identity)
  | ({ readonly state: 'sealed'; readonly heartbeats: HeartbeatTimes; readonly sealFailure?: string } & Identity)
  | ({ readonly state: 'standby' } & Standby)
  | ({ readonly state: 'performance_standby'; readonly appliedSentMs: number } & Standby)
  | ({ readonly state: 'dr_standby' } & Standby)
  | ({ readonly state: 'dr_active'; readonly canaryUtcMs?: number } & Active)
  | ({ readonly state: 'active' } & Active);

/** Number of heartbeat intervals for which an answered heartbeat is fresh. */
export const freshForIntervals = 2;

/** Returns whether a heartbeat sent at `sentMs` is fresh. A performance standby may serve reads only while it is. */
export const isFresh = (sentMs: number, intervalMs: number, monotonicMs: number): boolean =>
  monotonicMs - sentMs < freshForIntervals * intervalMs;
