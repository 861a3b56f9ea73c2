import type { RaftLimits } from './limits.ts';
import { Xorshift32 } from './xorshift.ts';

/**
 * The promises that this node has made by time, all in ms of its own clock, which a turn may find far ahead of the last one:
 * counting turns would let a promise end early that another node's lease rests on.
 */
export class ElectionClock {
  readonly #limits: Pick<RaftLimits, 'electionMs' | 'electionJitterMs'>;
  readonly #random: Xorshift32;
  #bootMs: number | undefined;
  #heardMs = Number.NEGATIVE_INFINITY;
  #deadlineMs = Number.NEGATIVE_INFINITY;
  /** This node rather leaves the lead to others. */
  isLate = false;

  constructor(limits: Pick<RaftLimits, 'electionMs' | 'electionJitterMs'>, seed: number) {
    this.#limits = limits;
    this.#random = new Xorshift32(seed);
  }

  /** The first moment of this run: it may have backed a lease just before it, in the run before. */
  begin(nowMs: number): void {
    if (this.#bootMs !== undefined) return;
    this.#bootMs = nowMs;
    this.reset(nowMs);
  }

  /** A leader spoke: until an election timeout from now it is believed in. */
  heardLeader(nowMs: number): void {
    this.#heardMs = nowMs;
    this.reset(nowMs);
  }

  /** Waits an election timeout and some more, at random, before the next campaign; a late one longer still. */
  reset(nowMs: number): void {
    this.#deadlineMs = nowMs + this.#limits.electionMs + this.#jitterMs() + this.#lateMs;
  }

  /**
   * A vote was split: the next campaign begins after the random part of the wait alone, but never before this node's own promise to vote
   * for nobody has ended.
   */
  retrySoon(nowMs: number): void {
    const promisedMs = Math.max(nowMs, this.#heardMs + this.#limits.electionMs, this.#afterStartMs(nowMs));
    const soonMs = promisedMs + this.#jitterMs() + this.#lateMs;
    this.#deadlineMs = Math.min(this.#deadlineMs, soonMs);
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#deadlineMs;
  }

  /** Why no vote is given now, unless it is asked for by a transfer, which the leader itself began. */
  refusal(nowMs: number): 'leader heard' | 'after start' | undefined {
    const { electionMs } = this.#limits;
    if (nowMs < this.#heardMs + electionMs) return 'leader heard';
    return this.#bootMs === undefined || nowMs < this.#bootMs + electionMs ? 'after start' : undefined;
  }

  get #lateMs(): number {
    return this.isLate ? this.#limits.electionMs : 0;
  }

  #jitterMs(): number {
    return this.#random.next() % Math.ceil(this.#limits.electionJitterMs);
  }

  /** When the time ends in which this node, just started, votes for nobody. */
  #afterStartMs(nowMs: number): number {
    return (this.#bootMs ?? nowMs) + this.#limits.electionMs;
  }
}
