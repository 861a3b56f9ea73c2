import type {
  ConfChange,
  ConfirmDone,
  ConfRefusalReason,
  Fitness,
  LogIndex,
  NodeId,
  ProposalDone,
  ReadDone,
  Status,
} from '@transitd/raft-core';
import type { MachineResult } from '../storage/command.ts';

/** The outcome of a configuration change. */
export type ConfDone = ProposalDone<MachineResult, ConfRefusalReason>;

/** The simulator's interface to a running node: the driver itself, or a core without a driver. */
export interface Host {
  start(): void;
  propose(data: Uint8Array, done: ProposalDone<MachineResult>): void;
  proposeConf(change: ConfChange, done: ConfDone): void;
  /** May be called on a follower, which forwards the read to its leader. */
  readIndex(done: ReadDone): void;
  /** Returns whether the state of this node may be read right now. */
  leaseRead(): boolean;
  /** Returns when the lease that permits such a read ends, by the clock of this node; undefined if there is none. */
  leaseEndMs(): number | undefined;
  transfer(to: NodeId | undefined): void;
  /** Asks that node whether it has applied the entry; only drivers answer. */
  confirm(to: NodeId, index: LogIndex, done: ConfirmDone): void;
  setFitness(fitness: Fitness): void;
  consensus(): Status;
  /** Returns the index up to which the peer has stored entries, as far as this leader knows. */
  matchOf(id: NodeId): LogIndex | undefined;
}
