export interface Round {
  readonly number: number;
  readonly sentAtMs: number;
}

/**
 * Heartbeat rounds of one leader's term. Every message carries the newest round; an answer to it shows that the peer still followed this
 * leader after the round began, and so counts for all earlier rounds.
 */
export class Rounds {
  /** Ascending; only rounds recent enough to matter. */
  #recent: Round[] = [];
  #newest = 0;
  readonly #keptMs: number;

  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  get newest(): number {
    return this.#newest;
  }

  begin(nowMs: number): number {
    this.#newest += 1;
    this.#recent.push({ number: this.#newest, sentAtMs: nowMs });
    const kept = this.#recent.findIndex(({ sentAtMs }) => sentAtMs >= nowMs - this.#keptMs);
    if (kept > 0) this.#recent.splice(0, kept);
    return this.#newest;
  }

  /** A round that is no longer kept is too old to back a lease, but an answer to it still confirms the reads of earlier rounds. */
  find(number: number): Round | undefined {
    if (number <= 0 || number > this.#newest) return undefined;
    return this.#recent[number - (this.#recent[0]?.number ?? 0)] ?? { number, sentAtMs: Number.NEGATIVE_INFINITY };
  }
}
