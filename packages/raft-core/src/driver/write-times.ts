/** How far back writes count. */
const windowMs = 15_000;
const samplesMax = 256;

/** How long the log's disk has taken for each write of late, without the time that a write waited for the one before it. */
export class WriteTimes {
  readonly #samples: { readonly endMs: number; readonly tookMs: number }[] = [];

  note(startedMs: number, endMs: number): void {
    const beginMs = Math.max(startedMs, this.#samples.at(-1)?.endMs ?? startedMs);
    this.#samples.push({ endMs, tookMs: endMs - beginMs });
    if (this.#samples.length > samplesMax) this.#samples.shift();
  }

  /** The median of the last seconds, in ms; undefined where nothing was written. */
  typicalMs(nowMs: number): number | undefined {
    const recent = this.#samples.filter(({ endMs }) => endMs > nowMs - windowMs).map(({ tookMs }) => tookMs);
    return recent.sort((a, b) => a - b)[recent.length >> 1];
  }
}
