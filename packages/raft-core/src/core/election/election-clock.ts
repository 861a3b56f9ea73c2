import type { NodeId, Term } from '../../types.ts';
import { earlyWaitMs, promiseMsFor, type RaftLimits } from '../contract/limits.ts';

/** The leader that was heard last. `leaseMs`: the length of its lease; undefined until it is announced in this term. */
interface HeardLeader {
  readonly leader: NodeId;
  readonly term: Term;
  readonly leaseMs: number | undefined;
}

/**
 * The promises that this node has made by time, in ms of its own clock. They are not counted in ticks: event-loop turns may be delayed,
 * and a count of ticks could then end a promise too early, while another node's lease still relies on that promise.
 */
export class ElectionClock {
  readonly #limits: Pick<RaftLimits, 'electionMs' | 'electionJitterMs'>;
  readonly #random: Xorshift32;
  #bootMs: number | undefined;
  #heardMs = Number.NEGATIVE_INFINITY;
  #heard: HeardLeader | undefined;
  /** True if the leader heard last has closed its connections, refuses new ones, and has not been heard since. */
  #isSuspected = false;
  #deadlineMs = Number.NEGATIVE_INFINITY;
  /** True if this node should not lead while another node can. */
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

  /** Notes a message of a leader, which this node trusts for one election timeout from now. Ends a suspicion. */
  heardLeader(nowMs: number, heard: HeardLeader): void {
    const before = this.#heard;
    const isSame = before?.leader === heard.leader && before.term === heard.term;
    this.#heard = isSame ? { ...heard, leaseMs: heard.leaseMs ?? before.leaseMs } : heard;
    this.#heardMs = nowMs;
    this.#isSuspected = false;
    this.reset(nowMs);
  }

  /**
   * Suspects that the leader heard last has ended. This permits one campaign as soon as no lease of that leader can hold any longer, after
   * a wait that separates the candidates by their places. A leader that announced no lease is trusted for the whole election timeout
   * nevertheless. Returns false if this node suspected it already.
   */
  suspect(nowMs: number, place: number): boolean {
    if (this.#isSuspected) return false;
    this.#isSuspected = true;
    if (this.#heard?.leaseMs === undefined) return true;
    const soonMs = this.#mayVoteFromMs(nowMs) + earlyWaitMs(place) + this.#lateMs;
    this.#deadlineMs = Math.min(this.#deadlineMs, soonMs);
    return true;
  }

  /** Returns whether a vote given now is earlier than one election timeout after the leader was heard. */
  isEarly(nowMs: number): boolean {
    return nowMs < this.#heardMs + this.#limits.electionMs;
  }

  /** Sets the next campaign to one election timeout plus a random part from now, and later still for a node that should not lead. */
  reset(nowMs: number): void {
    this.#deadlineMs = nowMs + this.#limits.electionMs + this.#jitterMs() + this.#lateMs;
  }

  /**
   * Retries after a split vote once the random part of the wait is over, but never before this node's own promise not to vote has ended.
   */
  retrySoon(nowMs: number): void {
    const soonMs = this.#mayVoteFromMs(nowMs) + this.#jitterMs() + this.#lateMs;
    this.#deadlineMs = Math.min(this.#deadlineMs, soonMs);
  }

  /** Returns when the next campaign is due, if this node suspects the leader heard last. */
  get suspectedDeadlineMs(): number | undefined {
    return this.#isSuspected ? this.#deadlineMs : undefined;
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#deadlineMs;
  }

  /** Returns why this node gives no vote now. A transfer, which the leader itself started, overrides the refusal. */
  refusal(nowMs: number): 'a leader was heard' | 'the node has just started' | undefined {
    const { electionMs } = this.#limits;
    if (nowMs < this.#trustedUntilMs) return 'a leader was heard';
    return this.#bootMs === undefined || nowMs < this.#bootMs + electionMs ? 'the node has just started' : undefined;
  }

  /** Returns the time until which this node votes only for the leader heard last. */
  get #trustedUntilMs(): number {
    const leaseMs = this.#isSuspected ? this.#heard?.leaseMs : undefined;
    const { electionMs } = this.#limits;
    return this.#heardMs + (leaseMs === undefined ? electionMs : Math.min(electionMs, promiseMsFor(leaseMs)));
  }

  /** Returns the earliest time from now at which none of this node's promises keeps it from voting. */
  #mayVoteFromMs(nowMs: number): number {
    return Math.max(nowMs, this.#trustedUntilMs, this.#afterStartMs(nowMs));
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

/** Random numbers repeatable from a seed (Marsaglia: Xorshift RNGs, 2003), for the random part of election timeouts. Not for secrets. */
export class Xorshift32 {
  #state: number;

  constructor(seed: number) {
    // The golden ratio separates small seeds; a state of 0 would stay 0.
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ 0x6a09e667) >>> 0 || 1;
  }

  /** Returns a uniformly distributed integer in [1, 2^32). */
  next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state;
  }
}
