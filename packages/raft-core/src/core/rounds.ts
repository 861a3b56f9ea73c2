export interface Round {
  readonly number: number;
  readonly sentAtMs: number;
}

/**
 * Heartbeat rounds of one leader's term. Every message carries the newest round begun; its answer shows that the peer still
 * followed this leader at some moment after the round began, and so stands for all rounds before it.
 */
export class Rounds {
  /** Ascending; those recent enough to matter. */
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

  /** An older round than those kept was sent too long ago to back anything, but still confirms reads that are older still. */
  find(number: number): Round | undefined {
    if (number <= 0 || number > this.#newest) return undefined;
    return this.#recent[number - (this.#recent[0]?.number ?? 0)] ?? { number, sentAtMs: Number.NEGATIVE_INFINITY };
  }
}
