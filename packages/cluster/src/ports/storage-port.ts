import type { Driver, DriverOptions, NodeId, PeerPorts, Random, SnapshotTransfer } from '@transitd/raft-core';
import type { CommitResult, KeyValueMachine, NodeSnapshots, Replica, SnapshotLink } from '@transitd/storage-fsm';

/** Consensus and records of one node. */
export interface Storage {
  readonly replica: Replica;
  readonly driver: Driver<CommitResult>;
  readonly machine: KeyValueMachine;
  readonly snapshots: NodeSnapshots;
  /** Whether consensus ran recently. After a pause of the process it must also have confirmed since then that this node leads. */
  isAwake(): boolean;
  /**
   * Whether a read in this event-loop turn is linearizable: the leader lease holds, and no clock shows a pause since the lease was granted.
   */
  holdsLease(): boolean;
  /** Time of the last clock jump, by the monotonic clock. Everything granted before it is void. */
  clockJumpedMs(): number;
  /** Whether less than the reserve is free on the data disk. */
  readonly diskLow: () => boolean;
  /**
   * Resolves when this node first leads and has applied every acknowledged entry; rejects when the node stops. Await this only in a cluster
   * of one: in a larger cluster this node may never lead.
   */
  readonly leads: Promise<void>;
  /** Finishes accepted writes, flushes and closes. @throws StorageFailed */
  stop(): Promise<void>;
}

/** The ports of a node with peers: transport, snapshots, and callbacks for consensus decisions about its membership. */
export interface MembershipPorts extends Pick<DriverOptions, 'onRemoved' | 'removedAt' | 'promotes' | 'removed'> {
  readonly link: SnapshotLink;
  /** A snapshot could not be fetched from a peer. */
  onFetchFailed(error: Error): void;
  /** Returns the names of voters whose disks are below their reserve, if the other voters are no quorum; otherwise none. */
  lowDisks(): readonly string[];
  peers(parts: {
    readonly nodeId: NodeId;
    readonly incarnation: number;
    readonly snapshots: SnapshotTransfer;
    readonly random: Random;
  }): PeerPorts;
}
