import type { ProposeResult } from '../core/raft-core.ts';
import type { Entry, LogIndex, Term } from '../types.ts';
import type { ProposalOutcome, RefusalReason } from './outcome.ts';

/** Called once. */
export type ProposalDone<Result, Reason = RefusalReason> = (outcome: ProposalOutcome<Result, Reason>) => void;

interface Queued<Result> {
  /** Puts it to the core: where it lies in the log then, or how it is refused. */
  readonly submit: () => ProposeResult<() => void>;
  readonly done: ProposalDone<Result>;
}

/**
 * Proposals from the moment they are taken until each has had its one answer. Once in the log, a proposal is what its index
 * and term say: the entry committed at that index is it, or it never happens. A leader that lost its lead can still learn
 * which, so its proposals wait for that, a while.
 */
export class Proposals<Result> {
  #queued: Queued<Result>[] = [];
  readonly #inLog = new Map<LogIndex, { readonly term: Term; readonly done: ProposalDone<Result> }>();
  /** The term that this node leads in. */
  #leading: Term | undefined;
  #lostSinceMs: number | undefined;

  /** How many wait for an answer. */
  get size(): number {
    return this.#queued.length + this.#inLog.size;
  }

  queue<Reason>(propose: () => ProposeResult<Reason>, done: ProposalDone<Result, Reason | RefusalReason>): void {
    const submit = (): ProposeResult<() => void> => {
      const result = propose();
      if (result.accepted) return result;
      const { reason } = result;
      return { accepted: false, reason: () => done({ kind: 'refused', reason }) };
    };
    this.#queued.push({ submit, done });
  }

  /** Proposes all that is queued, in order of arrival. */
  submit(): void {
    const queued = this.#queued;
    this.#queued = [];
    const refusals: (() => void)[] = [];
    for (const { submit, done } of queued) {
      const result = submit();
      if (!result.accepted) {
        refusals.push(result.reason);
        continue;
      }
      const { index, term } = result;
      // The one of an earlier lead is not in this log any more, but another node may still have it.
      this.#inLog.get(index)?.done({ kind: 'unknown', index });
      this.#inLog.set(index, { term, done });
    }
    for (const refuse of refusals) refuse();
  }

  applied({ index, term }: Entry, result: Result): void {
    const proposal = this.#inLog.get(index);
    if (proposal === undefined) return;
    this.#inLog.delete(index);
    proposal.done(proposal.term === term ? { kind: 'applied', index, result } : { kind: 'refused', reason: 'lostLeadership' });
  }

  /** Told each turn in which term this node leads, if it does. Who waits since an earlier lead waits `patienceMs` longer. */
  leads(term: Term | undefined, { nowMs, patienceMs }: { readonly nowMs: number; readonly patienceMs: number }): void {
    if (term !== this.#leading) {
      this.#leading = term;
      if (this.#inLog.size > 0) this.#lostSinceMs ??= nowMs;
    }
    if (this.#lostSinceMs === undefined || nowMs < this.#lostSinceMs + patienceMs) return;
    this.#lostSinceMs = undefined;
    this.#forget((proposal) => proposal.term !== term);
  }

  /** A snapshot has taken the place of the log up to `index`: what became of each entry there is not to be seen any more. */
  overtaken(index: LogIndex): void {
    this.#forget((_, proposed) => proposed <= index);
  }

  /** The node failed: what is in the log may yet be found committed by the next start, so nobody can say. */
  fail(): void {
    const queued = this.#queued;
    this.#queued = [];
    this.#forget(() => true);
    for (const { done } of queued) done({ kind: 'refused', reason: 'faulty' });
  }

  #forget(which: (proposal: { readonly term: Term }, index: LogIndex) => boolean): void {
    const forgotten = [...this.#inLog].filter(([index, proposal]) => which(proposal, index));
    for (const [index] of forgotten) this.#inLog.delete(index);
    for (const [index, { done }] of forgotten) done({ kind: 'unknown', index });
  }
}
