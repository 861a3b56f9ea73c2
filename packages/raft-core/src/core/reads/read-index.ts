import type { LogIndex, NodeId, ReadRequest } from '../../types.ts';
import type { Observe } from '../contract/coverage-events.ts';

/** A read that waits for the leader: this node's own (`asker` is its own id), or one forwarded by another node. */
export interface Read {
  readonly asker: NodeId;
  readonly request: ReadRequest;
}

export interface ConfirmedRead extends Read {
  readonly index: LogIndex;
}

/**
 * Reads that request a read index (Raft §8, thesis §6.4): the commit index at their arrival, once a quorum has answered a heartbeat round
 * that began after it. Until then another leader may have committed more. A new leader may know an old commit index until an entry of its
 * own term commits, so reads wait for that commit first, even in a cluster with one voter.
 */
export class ReadIndexQueue {
  readonly #observe: Observe;
  /** Reads that arrived before an entry of the leader's own term was committed. */
  #early: Read[] = [];
  /** Reads that wait for the next round. */
  #queued: ConfirmedRead[] = [];
  /** Reads that wait for the answers to one round; all other reads wait for a later round. */
  #inRound: { readonly round: number; readonly reads: readonly ConfirmedRead[] } | undefined;
  /** Number of waiting reads by asker. */
  readonly #waiting = new Map<NodeId, number>();

  constructor(observe: Observe) {
    this.#observe = observe;
  }

  add(
    read: Read,
    { commitIndex, ownTermCommitted }: { readonly commitIndex: LogIndex; readonly ownTermCommitted: boolean },
  ): void {
    this.#waiting.set(read.asker, this.waitingOf(read.asker) + 1);
    if (ownTermCommitted) this.#queued.push({ ...read, index: commitIndex });
    else this.#early.push(read);
  }

  /** Returns how many reads of this node wait. */
  waitingOf(asker: NodeId): number {
    return this.#waiting.get(asker) ?? 0;
  }

  /** Notes that an entry of the leader's own term is committed, at or below `commitIndex`. */
  ownTermCommitted(commitIndex: LogIndex): void {
    for (const read of this.#early) this.#queued.push({ ...read, index: commitIndex });
    this.#early = [];
  }

  get wantsRound(): boolean {
    return this.#queued.length > 0 && this.#inRound === undefined;
  }

  /**
   * Notes that a round has begun: the reads that wait for the next round now wait for its answers, unless an earlier round is still
   * unanswered.
   */
  begun(round: number): void {
    if (!this.wantsRound) return;
    if (this.#queued.length > 1) this.#observe('several reads shared a round');
    this.#inRound = { round, reads: this.#queued };
    this.#queued = [];
  }

  /** Confirms the reads of this round and of earlier ones: a quorum has answered. */
  answered(round: number): readonly ConfirmedRead[] {
    if (this.#inRound === undefined || round < this.#inRound.round) return [];
    const { reads } = this.#inRound;
    this.#inRound = undefined;
    for (const { asker } of reads) this.#waiting.set(asker, this.waitingOf(asker) - 1);
    return reads;
  }

  /** Returns all waiting reads, which are dropped when the node's role changes. */
  all(): readonly Read[] {
    return [...this.#early, ...(this.#inRound?.reads ?? []), ...this.#queued];
  }
}
