import type { ProposalOutcome, ReadOutcome } from '@transitd/raft-core';
import type { HistoryResult } from '../../src/fakes/memory-state-machine.ts';
import { SimClock } from '../../src/fakes/sim-clock.ts';
import { SimNode, type SimNodeOptions, type SimRun } from '../../src/fakes/sim-node.ts';

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (data: Uint8Array): string => new TextDecoder().decode(data);

/** Outcomes in the order in which they arrived. */
export class Observed {
  readonly proposals: { readonly name: string; readonly outcome: ProposalOutcome<HistoryResult> }[] = [];
  readonly reads: { readonly name: string; readonly outcome: ReadOutcome; readonly appliedIndex: number }[] = [];

  propose({ driver }: SimRun, name: string): void {
    driver.propose(bytes(name), (outcome) => this.proposals.push({ name, outcome }));
  }

  read({ driver }: SimRun, name: string): void {
    driver.readIndex((outcome) => this.reads.push({ name, outcome, appliedIndex: driver.status().appliedIndex }));
  }

  kinds(): string[] {
    return this.proposals.map(({ name, outcome }) => `${name} ${outcome.kind === 'refused' ? outcome.reason : outcome.kind}`);
  }
}

/** Returns a node that leads and has applied the no-op of its term. */
export function readyNode(options: SimNodeOptions = {}): { clock: SimClock; node: SimNode; run: SimRun; seen: Observed } {
  const clock = new SimClock();
  const node = new SimNode(clock);
  const run = node.start(options);
  clock.runUntil(() => run.driver.status().ready && run.driver.status().flushedIndex === 1);
  return { clock, node, run, seen: new Observed() };
}

/** Starts the next incarnation on the same disk, and runs it until everything stored is applied. */
export function restart(node: SimNode, options: SimNodeOptions = {}): SimRun {
  const run = node.start(options);
  node.clock.runUntil(() => run.driver.status().ready);
  return run;
}

/** Returns what clients wrote, in the order of the log. */
export const written = ({ stateMachine }: SimRun): string[] =>
  stateMachine.history.filter(({ type }) => type === 'normal').map(({ data }) => text(data));
