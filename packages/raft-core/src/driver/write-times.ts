/** Writes older than this do not count. */
const windowMs = 15_000;
const samplesMax = 256;

/**
 * Recent durations of single syncs on the log's disk, without the time that a write waited for the previous sync. Writes that share a sync
 * count once; otherwise all except the first would seem to take no time.
 */
export class WriteTimes {
  readonly #samples: { readonly endMs: number; readonly tookMs: number }[] = [];
  #syncBeganMs = Number.NEGATIVE_INFINITY;
  #endedMs = Number.NEGATIVE_INFINITY;

  /** Writes must be recorded in the order in which they began. */
  note(startedMs: number, endMs: number): void {
    const sharesSync = startedMs <= this.#syncBeganMs;
    if (!sharesSync) {
      this.#syncBeganMs = Math.max(startedMs, this.#endedMs);
      this.#samples.push({ endMs, tookMs: endMs - this.#syncBeganMs });
      if (this.#samples.length > samplesMax) this.#samples.shift();
    }
    this.#endedMs = endMs;
  }

  /** Returns the median of the last seconds, in ms; undefined if nothing was written. */
  typicalMs(nowMs: number): number | undefined {
    const recent = this.#samples.filter(({ endMs }) => endMs > nowMs - windowMs).map(({ tookMs }) => tookMs);
    return recent.sort((a, b) => a - b)[recent.length >> 1];
  }
}
