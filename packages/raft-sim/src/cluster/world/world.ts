import type { NodeId } from '@transitd/raft-core';
import type { SimClock } from '../../fakes/sim-clock.ts';
import type { SimRandom } from '../../fakes/sim-random.ts';
import type { Coverage } from '../checks/coverage.ts';
import type { Safety } from '../checks/safety.ts';
import type { Trace } from '../checks/trace.ts';
import type { SimConfig } from '../config/config.ts';
import type { SimNetwork } from '../network/network.ts';
import type { Incarnation, Member } from '../node/member.ts';
import type { NodeProcess } from '../process/process.ts';

/** The cluster as its clients, its operator, its devices and its snapshot transfers see it. */
export interface World {
  readonly config: SimConfig;
  readonly clock: SimClock;
  readonly coverage: Coverage;
  readonly safety: Safety;
  readonly network: SimNetwork;
  readonly random: SimRandom;
  /** Random numbers for the choices of {@link ExtraFaults}. */
  readonly extraRandom: SimRandom;
  readonly trace: Trace;
  readonly members: readonly Member[];
  /** Events so far. */
  readonly events: number;
  readonly isHealed: boolean;
  readonly running: readonly Member[];
  /** The running leader of the newest term. */
  readonly leader: Member | undefined;
  member(id: NodeId): Member | undefined;
  /** Starts a new node under a new id; it knows nobody until a leader sends to it. */
  join(): Member;
  /** Runs one event. @throws the violation of the rule that it broke */
  step(): boolean;
  /** Runs a task in the node's process, and checks the node afterwards. */
  enter(member: Member, incarnation: Incarnation, task: () => void): void;
  /** Runs a callback of a device of the node; an exception in it ends the simulation. */
  report(process: NodeProcess, task: () => void): void;
}
