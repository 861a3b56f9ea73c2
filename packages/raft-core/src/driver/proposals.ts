import type { ProposeResult } from '../core/contract/raft-core.ts';
import type { Entry, LogIndex, Term } from '../types.ts';
import type { ProposalOutcome, RefusalReason } from './outcome.ts';

/** Receives the steps of one proposal before its outcome. Its methods must not throw. */
export interface ProposalObserver {
  /** The entry is in this node's log. Not called for a proposal that is refused. */
  appended(index: LogIndex, term: Term): void;
  /** The entry is committed, and not applied yet. */
  committed(): void;
}

/** Called once. */
export type ProposalDone<Result, Reason = RefusalReason> = (outcome: ProposalOutcome<Result, Reason>) => void;

interface Queued<Result> {
  /** Passes the proposal to the core. Returns its position in the log, or the refusal. */
  readonly submit: () => ProposeResult<() => void>;
  readonly done: ProposalDone<Result>;
  readonly observer: ProposalObserver | undefined;
}

interface InLog<Result> {
  readonly term: Term;
  readonly done: ProposalDone<Result>;
  readonly observer: ProposalObserver | undefined;
}

/**
 * Keeps each proposal from the call until its outcome. Once in the log, a proposal is identified by index and term. If the entry committed
 * at that index has another term, the proposal never happens. A node that lost its leadership can still learn which entry is committed, so
 * its proposals wait for that for a limited time.
 */
export class Proposals<Result> {
  #queued: Queued<Result>[] = [];
  readonly #inLog = new Map<LogIndex, InLog<Result>>();
  /** The term in which this node leads. */
  #leading: Term | undefined;
  #lostSinceMs: number | undefined;

  /** The number of proposals that wait for an outcome. */
  get size(): number {
    return this.#queued.length + this.#inLog.size;
  }

  queue<Reason>(
    propose: () => ProposeResult<Reason>,
    done: ProposalDone<Result, Reason | RefusalReason>,
    observer?: ProposalObserver,
  ): void {
    const submit = (): ProposeResult<() => void> => {
      const result = propose();
      if (result.accepted) return result;
      const { reason } = result;
      return { accepted: false, reason: () => done({ kind: 'refused', reason }) };
    };
    this.#queued.push({ submit, done, observer });
  }

  /** Proposes everything queued, in order of arrival. */
  submit(): void {
    const queued = this.#queued;
    this.#queued = [];
    const refusals: (() => void)[] = [];
    for (const { submit, done, observer } of queued) {
      const result = submit();
      if (!result.accepted) {
        refusals.push(result.reason);
        continue;
      }
      const { index, term } = result;
      // The proposal of an earlier leadership is no longer in this log, but another node may still have it.
      this.#inLog.get(index)?.done({ kind: 'unknown', index });
      this.#inLog.set(index, { term, done, observer });
      observer?.appended(index, term);
    }
    for (const refuse of refusals) refuse();
  }

  /** Reports committed entries to the observers of their proposals. */
  committed(entries: readonly Entry[]): void {
    if (this.#inLog.size === 0) return;
    for (const { index, term } of entries) {
      const proposal = this.#inLog.get(index);
      if (proposal?.term === term) proposal.observer?.committed();
    }
  }

  applied({ index, term }: Entry, result: Result): void {
    const proposal = this.#inLog.get(index);
    if (proposal === undefined) return;
    this.#inLog.delete(index);
    proposal.done(proposal.term === term ? { kind: 'applied', index, result } : { kind: 'refused', reason: 'lostLeadership' });
  }

  /**
   * Called each turn with the term in which this node leads, if it does. Proposals of an earlier leadership get the outcome `unknown` after
   * `patienceMs`.
   */
  observeTerm(term: Term | undefined, { nowMs, patienceMs }: { readonly nowMs: number; readonly patienceMs: number }): void {
    if (term !== this.#leading) {
      this.#leading = term;
      if (this.#inLog.size > 0) this.#lostSinceMs ??= nowMs;
    }
    if (this.#lostSinceMs === undefined || nowMs < this.#lostSinceMs + patienceMs) return;
    this.#lostSinceMs = undefined;
    this.#forget((proposal) => proposal.term !== term);
  }

  /**
   * Ends the proposals up to `index` as unknown: a snapshot replaced the log there, and the outcome of each entry is no longer visible.
   */
  endUpTo(index: LogIndex): void {
    this.#forget((_, proposed) => proposed <= index);
  }

  /** Ends all proposals because the node failed. Those in the log are `unknown`, because the next start may find them committed. */
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
