import type { Observe } from '../core/contract/coverage-events.ts';
import type { Clock, LogStore, Random, SnapshotTransfer, StateMachine, Transport } from '../ports.ts';
import type { ConfState, Fitness, LogIndex, NodeId } from '../types.ts';
import type { DriverLimits } from './limits.ts';
import type { DriverStatus } from './outcome.ts';

/** The ports that a node with peers needs. */
export interface PeerPorts {
  readonly transport: Transport;
  readonly snapshots: SnapshotTransfer;
  /** Spreads elections in time. */
  readonly random: Random;
}

export interface DriverPorts<Result> {
  readonly log: LogStore;
  readonly stateMachine: StateMachine<Result>;
  readonly clock: Clock;
  /** Without peers the node runs only as its cluster's sole member. */
  readonly peers?: PeerPorts;
}

export interface DriverOptions {
  /**
   * Called once, after every waiting request has its outcome, when a port failed or an invariant was violated. The node has stopped; the
   * process must exit and restart from the disk.
   */
  onFatal(error: Error): void;
  /** Called when role, term, leader or readiness changes. */
  onStatus?(status: DriverStatus): void;
  /**
   * Called with the end of the lease until which other threads may answer reads from the applied state without asking the driver, on the
   * driver's clock; undefined while they may not. The lease is ended before a message shows a peer a commit index that is not applied here,
   * and before anything that could let another node lead. It is only reported while everything committed is applied. It is also called
   * after entries were applied, before a peer is told so: they may have ended the right to answer by a heartbeat.
   */
  onLease?(endMs: number | undefined): void;
  /** Called with the configuration in force, at the start and at each change; it may be rolled back. */
  onConfiguration?(conf: ConfState, index: LogIndex): void;
  /** Called when a newer configuration is committed: `consensus().committedConf`. */
  onConfCommitted?(conf: ConfState, index: LogIndex): void;
  /** Called when this node is no longer a member. Ids are never reused, so the caller stores this and passes it as `removed`. */
  onRemoved?(atIndex: LogIndex): void;
  readonly limits?: Partial<DriverLimits>;
  /** The node's fitness at the start; `fit` by default. */
  readonly fitness?: Fitness;
  /** Whether this node learned earlier that it is no longer a member. */
  readonly removed?: boolean;
  /** Returns the entry that removed this id, according to the state. A sender with a removed id is told of its removal. */
  removedAt?(id: NodeId): LogIndex | undefined;
  /** Returns whether the disk has room for more log entries; true by default. Called in each turn. */
  hasRoom?(): boolean;
  /** Returns whether this learner becomes a voter once it keeps up; false by default. Called on the leader. */
  promotes?(learner: NodeId, conf: ConfState): boolean;
  /** Checks the core's invariants after every turn; for tests and soak runs. */
  readonly checkInvariants?: boolean;
  /** Receives coverage events, for tests that check which events have occurred. */
  readonly observe?: Observe;
}
