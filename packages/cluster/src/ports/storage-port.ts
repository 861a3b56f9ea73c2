import type { Driver, DriverOptions, NodeId, PeerPorts, Random, SnapshotTransfer } from '@transitd/raft-core';
import type { CommitResult, KeyValueMachine, NodeSnapshots, Replica, SnapshotLink } from '@transitd/storage-fsm';

/** Consensus and the records of one node. */
export interface Storage {
  readonly replica: Replica;
  readonly driver: Driver<CommitResult>;
  readonly machine: KeyValueMachine;
  readonly snapshots: NodeSnapshots;
  /** Consensus has run of late, and has shown since then that this node leads if the process stood still before. */
  isAwake(): boolean;
  /** Whether this node's state is linearizable to read in this very turn: a leader lease holds, and no clock shows a pause since its grant. */
  holdsLease(): boolean;
  /** Reading of the monotonic clock when a clock last jumped against it; what was granted before counts for nothing. */
  clockJumpedMs(): number;
  /** Less than the reserve is free on the data disk. */
  readonly diskLow: () => boolean;
  /**
   * Resolves when this node first leads and has applied everything that was ever acknowledged; a stop rejects it. Only of a
   * cluster's only member can it be waited for.
   */
  readonly leads: Promise<void>;
  /** Finishes the writes that were taken, flushes and closes. @throws StorageFailed */
  stop(): Promise<void>;
}

/** What makes a node one of several: the ways to its peers, and who hears of what consensus decides about its membership. */
export interface MembershipPorts extends Pick<DriverOptions, 'onRemoved' | 'removedAt' | 'promotes' | 'removed'> {
  readonly link: SnapshotLink;
  /** Why a snapshot did not arrive. */
  onFetchFailed(error: Error): void;
  peers(parts: {
    readonly nodeId: NodeId;
    readonly incarnation: number;
    readonly snapshots: SnapshotTransfer;
    readonly random: Random;
  }): PeerPorts;
}
