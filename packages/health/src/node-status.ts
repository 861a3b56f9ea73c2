/** A replication mode of a cluster; `unknown` until a standby has been told by the active node. */
export type ReplicationMode = 'disabled' | 'primary' | 'secondary' | 'bootstrapping' | 'unknown';

export interface ReplicationModes {
  readonly performance: ReplicationMode;
  readonly disasterRecovery: ReplicationMode;
}

export interface Cluster {
  readonly id: string;
  readonly name: string;
}

/** What is known of a node in every state. */
interface Identity {
  /** The server's release. */
  readonly version: string;
  /** Absent while the node has never belonged to a cluster; known also while it is sealed. */
  readonly cluster?: Cluster;
}

/**
 * The heartbeats from an unsealed standby to the active node. Times are readings of one monotonic clock, in milliseconds.
 * An echo counts from when it was *sent*, and only once it was *answered*: what waited in a buffer must not look fresh.
 */
export interface Echoes {
  readonly intervalMs: number;
  /** Since when the node has been an unsealed standby; counts until the first answer. */
  readonly sinceMs: number;
  /** When the newest answered echo was sent; absent before the first answer. */
  readonly answeredSentMs?: number;
  /** How long the latest echo took, a failed one included; 0 before the first. */
  readonly durationMs: number;
  /** The active node's clock minus this node's, uncertain by `durationMs`; 0 after a failed echo. */
  readonly clockSkewMs: number;
  /** As the newest answer told. */
  readonly replication?: ReplicationModes;
}

interface Standby extends Identity {
  readonly echoes: Echoes;
  /** UTC time, in milliseconds, in the newest canary record that this node has applied. */
  readonly canaryUtcMs?: number;
}

interface Active extends Identity {
  /** The commit index. */
  readonly lastWal: number;
  readonly replication?: ReplicationModes;
  /** Only when the operator configured one. */
  readonly license?: { readonly expiryUtcMs: number };
}

/**
 * A node as health reports it. Each state carries what can be said in it and nothing else, so that neither a sealed active node
 * nor a performance standby without heartbeats can be written down.
 *
 * - `standby`: unsealed, not active; forwards everything
 * - `performance_standby`: may serve reads from its replica, for as long as `appliedSentMs` is fresh: when the newest answered
 *   echo was sent whose commit index this node has applied
 * - `dr_standby`, `dr_active`: members of a cluster that really follows another one for disaster recovery
 */
export type NodeStatus =
  | ({ readonly state: 'uninitialized' } & Identity)
  | ({ readonly state: 'removed' } & Identity)
  | ({ readonly state: 'sealed' } & Identity)
  | ({ readonly state: 'standby' } & Standby)
  | ({ readonly state: 'performance_standby'; readonly appliedSentMs: number } & Standby)
  | ({ readonly state: 'dr_standby' } & Standby)
  | ({ readonly state: 'dr_active' } & Active)
  | ({ readonly state: 'active' } & Active);

/** How many heartbeat intervals an answered echo stays good for. */
const intervalsMax = 2;

/** Whether an echo sent at `sentMs` still vouches for the connection. Also the time for which a performance standby may serve. */
export const isFresh = (sentMs: number, intervalMs: number, monotonicMs: number): boolean =>
  monotonicMs - sentMs < intervalsMax * intervalMs;
