import type { RaftLimits } from '../contract/limits.ts';
import { Xorshift32 } from './xorshift.ts';

/**
 * The promises that this node has made by time, in ms of its own clock. They are not counted in ticks: event-loop turns may be delayed,
 * and a count of ticks could then end a promise too early, while another node's lease still relies on that promise.
 */
export class ElectionClock {
  readonly #limits: Pick<RaftLimits, 'electionMs' | 'electionJitterMs'>;
  readonly #random: Xorshift32;
  #bootMs: number | undefined;
  #heardMs = Number.NEGATIVE_INFINITY;
  #deadlineMs = Number.NEGATIVE_INFINITY;
  /** This node prefers that another node leads. */
  isLate = false;

  constructor(limits: Pick<RaftLimits, 'electionMs' | 'electionJitterMs'>, seed: number) {
    this.#limits = limits;
    this.#random = new Xorshift32(seed);
  }

  /** Notes the start of this incarnation. The previous incarnation may have backed a lease just before. */
  begin(nowMs: number): void {
    if (this.#bootMs !== undefined) return;
    this.#bootMs = nowMs;
    this.reset(nowMs);
  }

  /** Notes a message of a leader, which this node trusts for one election timeout from now. */
  heardLeader(nowMs: number): void {
    this.#heardMs = nowMs;
    this.reset(nowMs);
  }

  /** Sets the next campaign to one election timeout plus a random part from now, and later still for a node that should not lead. */
  reset(nowMs: number): void {
    this.#deadlineMs = nowMs + this.#limits.electionMs + this.#jitterMs() + this.#lateMs;
  }

  /**
   * Retries after a split vote once the random part of the wait is over, but never before this node's own promise not to vote has ended.
   */
  retrySoon(nowMs: number): void {
    const promisedMs = Math.max(nowMs, this.#heardMs + this.#limits.electionMs, this.#afterStartMs(nowMs));
    const soonMs = promisedMs + this.#jitterMs() + this.#lateMs;
    this.#deadlineMs = Math.min(this.#deadlineMs, soonMs);
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#deadlineMs;
  }

  /** Returns why this node gives no vote now. A transfer, which the leader itself started, overrides the refusal. */
  refusal(nowMs: number): 'a leader was heard' | 'the node has just started' | undefined {
    const { electionMs } = this.#limits;
    if (nowMs < this.#heardMs + electionMs) return 'a leader was heard';
    return this.#bootMs === undefined || nowMs < this.#bootMs + electionMs ? 'the node has just started' : undefined;
  }

  get #lateMs(): number {
    return this.isLate ? this.#limits.electionMs : 0;
  }

  #jitterMs(): number {
    return this.#random.next() % Math.ceil(this.#limits.electionJitterMs);
  }

  /** Returns when this node, just started, may vote again. */
  #afterStartMs(nowMs: number): number {
    return (this.#bootMs ?? nowMs) + this.#limits.electionMs;
  }
}
