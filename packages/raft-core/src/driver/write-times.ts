/** Writes older than this do not count. */
const windowMs = 15_000;
const samplesMax = 256;

/** Recent write times of the log's disk, without the time that a write waited for the previous one. */
export class WriteTimes {
  readonly #samples: { readonly endMs: number; readonly tookMs: number }[] = [];

  note(startedMs: number, endMs: number): void {
    const beginMs = Math.max(startedMs, this.#samples.at(-1)?.endMs ?? startedMs);
    this.#samples.push({ endMs, tookMs: endMs - beginMs });
    if (this.#samples.length > samplesMax) this.#samples.shift();
  }

  /** Returns the median of the last seconds, in ms; undefined if nothing was written. */
  typicalMs(nowMs: number): number | undefined {
    const recent = this.#samples.filter(({ endMs }) => endMs > nowMs - windowMs).map(({ tookMs }) => tookMs);
    return recent.sort((a, b) => a - b)[recent.length >> 1];
  }
}
