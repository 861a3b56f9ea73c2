import type { Status } from '../../../core/raft-core.ts';
import type { ConfRefusalReason } from '../../../driver/outcome.ts';
import type { ProposalDone } from '../../../driver/proposals.ts';
import type { ReadDone } from '../../../driver/reads.ts';
import type { ConfChange, Fitness, LogIndex, NodeId } from '../../../types.ts';
import type { MachineResult } from '../storage/machine.ts';

/** How a change of the configuration ended. */
export type ConfDone = ProposalDone<MachineResult, ConfRefusalReason>;

/** What the simulator asks of a running node: the driver itself, or the short way around a core in its place. */
export interface Host {
  start(): void;
  propose(data: Uint8Array, done: ProposalDone<MachineResult>): void;
  proposeConf(change: ConfChange, done: ConfDone): void;
  /** Also asked of followers, who ask their leader. */
  readIndex(done: ReadDone): void;
  /** True: the state of this node may be read right now. */
  leaseRead(): boolean;
  transfer(to: NodeId | undefined): void;
  setFitness(fitness: Fitness): void;
  consensus(): Status;
  /** What this node, as a leader, believes that the peer has stored. */
  matchOf(id: NodeId): LogIndex | undefined;
}
