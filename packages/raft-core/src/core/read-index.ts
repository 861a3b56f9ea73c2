import type { LogIndex, NodeId, ReadRequest } from '../types.ts';
import type { Observe } from './coverage-events.ts';

/** A read that waits on the leader: of this node (`asker` its own id), or forwarded by another one. */
export interface Read {
  readonly asker: NodeId;
  readonly request: ReadRequest;
}

export interface ConfirmedRead extends Read {
  readonly index: LogIndex;
}

/**
 * Reads that ask for a safe point in the log (Raft §8, thesis §6.4): the commit index at their arrival, once a quorum has
 * answered a heartbeat round begun after it, for until then another leader may have committed more. A new leader may know an
 * old commit index until an entry of its own term commits, so reads wait for that first, with one voter as with many.
 */
export class ReadIndexQueue {
  readonly #observe: Observe;
  /** Asked before an entry of the leader's own term was committed. */
  #early: Read[] = [];
  /** Wait for the next round. */
  #queued: ConfirmedRead[] = [];
  /** Wait for the answers to one round; the others have to wait for their own. */
  #inRound: { readonly round: number; readonly reads: readonly ConfirmedRead[] } | undefined;

  constructor(observe: Observe) {
    this.#observe = observe;
  }

  ask(
    read: Read,
    { commitIndex, ownTermCommitted }: { readonly commitIndex: LogIndex; readonly ownTermCommitted: boolean },
  ): void {
    if (ownTermCommitted) this.#queued.push({ ...read, index: commitIndex });
    else this.#early.push(read);
  }

  /** An entry of the leader's own term is committed, at or below `commitIndex`. */
  ownTermCommitted(commitIndex: LogIndex): void {
    for (const read of this.#early) this.#queued.push({ ...read, index: commitIndex });
    this.#early = [];
  }

  get wantsRound(): boolean {
    return this.#queued.length > 0 && this.#inRound === undefined;
  }

  /** A round has begun: whoever waits for one waits for its answers, unless an earlier round is still to be answered. */
  begun(round: number): void {
    if (!this.wantsRound) return;
    if (this.#queued.length > 1) this.#observe('read round shared');
    this.#inRound = { round, reads: this.#queued };
    this.#queued = [];
  }

  /** A quorum has answered this round, or a later one. */
  answered(round: number): readonly ConfirmedRead[] {
    if (this.#inRound === undefined || round < this.#inRound.round) return [];
    const { reads } = this.#inRound;
    this.#inRound = undefined;
    return reads;
  }

  /** All that wait: they die with the role that took them. */
  all(): readonly Read[] {
    return [...this.#early, ...(this.#inRound?.reads ?? []), ...this.#queued];
  }
}
