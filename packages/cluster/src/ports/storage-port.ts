import type {
  Driver,
  DriverOptions,
  DriverStatus,
  Grant,
  LogIndex,
  NodeId,
  PeerPorts,
  Random,
  SnapshotTransfer,
} from '@transitd/raft-core';
import type {
  CommitResult,
  FeatureLevel,
  KeyValueMachine,
  NodeSnapshots,
  Replica,
  ReplicationState,
  SnapshotLink,
} from '@transitd/storage-fsm';

/** Consensus and records of one node, whatever engine provides them. */
export interface Engine {
  readonly replica: Replica;
  status(): DriverStatus;
  /** Whether consensus ran recently. After a pause of the process it must also have confirmed since then that this node leads. */
  isAwake(): boolean;
  /**
   * Whether a read in this event-loop turn is linearizable: the leader lease holds, and no clock shows a pause since the lease was granted.
   */
  holdsLease(): boolean;
  /** The leader lease, whether or not a clock has jumped since it was granted; undefined while this node holds none. */
  lease(): Grant | undefined;
  /** Time of the last clock jump, by the monotonic clock. Everything granted before it is void. */
  clockJumpedMs(): number;
  /** Whether less than the reserve is free on the data disk. */
  diskLow(): boolean;
  /** Time for which a write to this node's disk has hung, in ms; 0 if none hangs. */
  readonly diskStalledMs: number;
  /** The longest time from the end of an active node until another one is elected, in ms. */
  readonly electedWithinMs: number;
  /** Name of the attempt, of a restore or of a whole state from a primary, that made the records; undefined if they were never replaced. */
  readonly restoredBy: string | undefined;
  /** The state of replication between clusters; undefined if this cluster never took part in it. */
  readonly replication: ReplicationState | undefined;
  /** The digest of the replicated records at this position; undefined while it is not known. */
  scopeDigestAt(position: LogIndex): bigint | undefined;
  readonly featureLevel: FeatureLevel;
  /** Transfers the role of the active node, if this node has it and another can take it; resolves when that succeeded or failed. */
  transferLeadership(): Promise<void>;
  /** Finishes accepted writes, flushes and closes. @throws StorageFailed */
  stop(): Promise<void>;
}

/** The engine outside of this process: consensus and records in etcd. */
export interface OutsideEngine extends Engine {
  readonly kind: 'etcd';
}

/** The engine in this process: consensus by Raft, records in the data directory. */
export interface Storage extends Engine {
  readonly kind: 'raft';
  readonly driver: Driver<CommitResult>;
  readonly machine: KeyValueMachine;
  readonly snapshots: NodeSnapshots;
  /**
   * Resolves when this node first leads and has applied every acknowledged entry; rejects when the node stops. Await this only in a cluster
   * of one: in a larger cluster this node may never lead.
   */
  readonly leads: Promise<void>;
}

/** The ports of a node with peers: transport, snapshots, and what the driver asks about its membership. */
export interface MembershipPorts {
  readonly driver: Pick<DriverOptions, 'onRemoved' | 'removedAt' | 'promotes' | 'removed'>;
  readonly link: SnapshotLink;
  /** A snapshot could not be fetched from a peer. */
  onFetchFailed(error: Error): void;
  /**
   * Returns the names of voters whose disks are below their reserve, if the other voters are no quorum. Returns none otherwise, and on
   * every node except the leader.
   * @param diskLow - whether the disk of this node is below its reserve
   */
  lowDisks(driver: Pick<Driver<CommitResult>, 'consensus' | 'status'>, diskLow: boolean): readonly string[];
  peers(parts: {
    readonly nodeId: NodeId;
    readonly incarnation: number;
    readonly snapshots: SnapshotTransfer;
    readonly random: Random;
  }): PeerPorts;
}
