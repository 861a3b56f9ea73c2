import type { ProposeResult } from '../core/raft-core.ts';
import { invariant } from '../invariant.ts';
import type { Entry, LogIndex, Term } from '../types.ts';
import type { ProposalOutcome, RefusalReason } from './outcome.ts';

/** Called once. */
export type ProposalDone<Result> = (outcome: ProposalOutcome<Result>) => void;

/** Proposals from the moment they are taken until each has had its one answer. */
export class Proposals<Result> {
  #queued: { readonly data: Uint8Array; readonly done: ProposalDone<Result> }[] = [];
  /** By the index that the log gave them. The term tells whether the entry committed there is the one proposed. */
  readonly #inLog = new Map<LogIndex, { readonly term: Term; readonly done: ProposalDone<Result> }>();

  /** How many wait for an answer. */
  get size(): number {
    return this.#queued.length + this.#inLog.size;
  }

  queue(data: Uint8Array, done: ProposalDone<Result>): void {
    this.#queued.push({ data, done });
  }

  /** Proposes all that is queued, in order of arrival. */
  submit(propose: (data: Uint8Array) => ProposeResult): void {
    const queued = this.#queued;
    this.#queued = [];
    const refused: { readonly done: ProposalDone<Result>; readonly reason: RefusalReason }[] = [];
    for (const { data, done } of queued) {
      const result = propose(data);
      if (result.accepted) this.#inLog.set(result.index, { term: result.term, done });
      else refused.push({ done, reason: result.reason });
    }
    for (const { done, reason } of refused) done({ kind: 'refused', reason });
  }

  applied({ index, term }: Entry, result: Result): void {
    const proposal = this.#inLog.get(index);
    if (proposal === undefined) return;
    invariant(proposal.term === term, 'the log of a lone voter is never superseded', { index, term, proposed: proposal.term });
    this.#inLog.delete(index);
    proposal.done({ kind: 'applied', index, result });
  }

  /** The node failed: what is in the log may yet be found committed by the next start, so nobody can say. */
  fail(): void {
    const queued = this.#queued;
    const inLog = [...this.#inLog];
    this.#queued = [];
    this.#inLog.clear();
    for (const [index, { done }] of inLog) done({ kind: 'unknown', index });
    for (const { done } of queued) done({ kind: 'refused', reason: 'faulty' });
  }
}
