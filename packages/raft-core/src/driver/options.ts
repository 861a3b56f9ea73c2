import type { Observe } from '../core/coverage-events.ts';
import type { Clock, LogStore, Random, SnapshotTransfer, StateMachine, Transport } from '../ports.ts';
import type { ConfState, Fitness, LogIndex, NodeId } from '../types.ts';
import type { DriverLimits } from './limits.ts';
import type { DriverStatus } from './outcome.ts';

/** What a node needs to be one of several. */
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
  /** Without it the node runs only as its cluster's sole member. */
  readonly peers?: PeerPorts;
}

export interface DriverOptions {
  /**
   * Called once, after every waiter has had its outcome, when a port failed or a rule was broken. The node has stopped; the
   * process must end and start again from the disk.
   */
  onFatal(error: Error): void;
  /** Called when role, term, leader or readiness changed. */
  onStatus?(status: DriverStatus): void;
  /** Called with the configuration in force, at the start and at each change; it may be rolled back. */
  onConfiguration?(conf: ConfState, index: LogIndex): void;
  /** Called when a newer configuration than before is committed: that of `consensus().committedConf`. */
  onConfCommitted?(conf: ConfState, index: LogIndex): void;
  /** Called when this node has ceased to be a member, which ids never become again; to be remembered as `removed`. */
  onRemoved?(atIndex: LogIndex): void;
  readonly limits?: Partial<DriverLimits>;
  /** What the node is at the start; `fit` unless given. */
  readonly fitness?: Fitness;
  /** This node was told earlier that it is no member any more. */
  readonly removed?: boolean;
  /** Where the state says that this id was removed. A sender it names is told so. */
  removedAt?(id: NodeId): LogIndex | undefined;
  /** Whether the disk has room for more entries of the log; it has unless given. Asked in each turn. */
  hasRoom?(): boolean;
  /** Whether this learner becomes a voter once it keeps up; none does unless given. Asked on the leader. */
  promotes?(learner: NodeId, conf: ConfState): boolean;
  /** Checks the core's invariants after every turn; for tests and soak runs. */
  readonly checkInvariants?: boolean;
  /** Hears of rare situations, for tests that must have met them. */
  readonly observe?: Observe;
}
