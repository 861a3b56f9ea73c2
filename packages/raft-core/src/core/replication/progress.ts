import { invariant } from '../../invariant.ts';
import type { LogIndex, NodeId } from '../../types.ts';
import type { RaftLimits } from '../contract/limits.ts';
import { Inflight } from './inflight.ts';

/**
 * One peer's log as the leader knows it. `probe`: the matching point is unknown, so one message at a time asks for it. `replicate`: the
 * matching point is known, and entries are sent ahead of acknowledgements. `snapshot`: the leader's log no longer reaches back to the peer.
 */
export class Progress {
  readonly id: NodeId;
  /** This leader's counter for this Progress; answers with another session do not count. */
  readonly session: number;
  readonly inflight: Inflight;
  #state: 'probe' | 'replicate' | 'snapshot' = 'probe';
  /** The peer has certainly stored everything up to this index. */
  #match: LogIndex = 0;
  #next: LogIndex;
  /** True after a probe was sent. The next probe follows the answer or the next heartbeat. */
  paused = false;
  /** In state `snapshot`: the index of the offer, and when it was sent. */
  #offered: { readonly index: LogIndex; atMs: number } | undefined;
  /** True while old entries are being read for this peer. */
  readingFrom: LogIndex | undefined;
  /** The newest commit index that was sent to the peer. */
  sentCommit: LogIndex = 0;
  /** True if the answer to the newest heartbeat may still trigger an empty Append. Each heartbeat allows one. */
  mayNudge = false;
  /** When the round was sent that the peer answered as fit to lead; undefined if it last answered as unfit, or not at all. */
  fitAtMs: number | undefined;
  /** When the last answer of this term arrived. */
  heardMs: number;
  /** The newest heartbeat round that the peer has answered, and when that round was sent. */
  #round = { number: 0, sentAtMs: Number.NEGATIVE_INFINITY };
  /**
   * Set for a removed peer that still has to learn of its removal: the entry that removed it and, once that entry is committed, the
   * deadline.
   */
  leaving: { readonly confIndex: LogIndex; untilMs: number | undefined } | undefined;

  constructor(
    id: NodeId,
    start: { readonly session: number; readonly next: LogIndex; readonly nowMs: number },
    limits: RaftLimits,
  ) {
    this.id = id;
    this.session = start.session;
    this.#next = start.next;
    this.heardMs = start.nowMs;
    this.inflight = new Inflight(limits);
  }

  get state(): 'probe' | 'replicate' | 'snapshot' {
    return this.#state;
  }
  get fit(): boolean {
    return this.fitAtMs !== undefined;
  }
  get match(): LogIndex {
    return this.#match;
  }
  get next(): LogIndex {
    return this.#next;
  }
  get round(): { readonly number: number; readonly sentAtMs: number } {
    return this.#round;
  }
  get offered(): { readonly index: LogIndex; readonly atMs: number } | undefined {
    return this.#offered;
  }

  /** Notes an answered round; it counts for all earlier rounds too. */
  answered(round: { readonly number: number; readonly sentAtMs: number }): void {
    if (round.number > this.#round.number) this.#round = round;
  }

  probe(): void {
    this.#enter('probe');
  }

  offerSnapshot(index: LogIndex, nowMs: number): void {
    this.#enter('snapshot');
    this.#offered = { index, atMs: nowMs };
  }

  offeredAgain(nowMs: number): void {
    if (this.#offered !== undefined) this.#offered.atMs = nowMs;
  }

  /** Notes that entries up to `end` were sent ahead of their acknowledgement. */
  sent(end: LogIndex, bytes: number): void {
    invariant(this.#state === 'replicate', 'only a replicating peer is sent entries ahead', { id: this.id, end });
    this.inflight.add(end, bytes);
    this.#next = end + 1;
  }

  /**
   * Notes that the peer has stored everything up to `index`. If that raises `match`, or confirms it while probing, the matching point is
   * found. `firstIndex` of the log decides whether entries can follow while the peer waits for a snapshot. Returns whether anything
   * changed.
   */
  acknowledged(index: LogIndex, firstIndex: LogIndex): boolean {
    const before = this.#match;
    const state = this.#state;
    this.#match = Math.max(before, index);
    this.#next = Math.max(this.#next, this.#match + 1);
    if (state === 'replicate') this.inflight.free(this.#match);
    const found = state === 'probe' ? index >= before : state === 'snapshot' && index >= firstIndex - 1;
    if (found) this.#enter('replicate');
    return found || this.#match > before;
  }

  /**
   * Notes that the logs do not match at `prevIndex`; they may match at `candidate`. Returns false for a stale rejection: a later
   * acknowledgement or probe has made it obsolete.
   */
  rejected(prevIndex: LogIndex, candidate: LogIndex): boolean {
    if (this.#state === 'snapshot' || prevIndex <= this.#match) return false;
    if (this.#state === 'replicate') {
      this.#enter('probe');
      return true;
    }
    if (prevIndex !== this.#next - 1) return false;
    this.#next = Math.max(Math.min(prevIndex, candidate + 1), this.#match + 1);
    this.paused = false;
    return true;
  }

  checkInvariants(limits: RaftLimits): void {
    const facts = { id: this.id, state: this.#state, match: this.#match, next: this.#next };
    invariant(this.#match < this.#next, 'match < next', facts);
    invariant(this.inflight.count <= limits.inflightMessagesMax, 'the window is within its limit', facts);
    invariant(this.#state === 'replicate' || this.inflight.count === 0, 'only a replicating peer has a window', facts);
    invariant(
      (this.#state === 'snapshot') === (this.#offered !== undefined),
      'a peer has an offered snapshot exactly while its state is `snapshot`',
      facts,
    );
  }

  #enter(state: 'probe' | 'replicate' | 'snapshot'): void {
    this.#state = state;
    this.#next = this.#match + 1;
    this.inflight.clear();
    this.paused = false;
    this.readingFrom = undefined;
    this.#offered = undefined;
    this.sentCommit = Math.min(this.sentCommit, this.#match);
  }
}
