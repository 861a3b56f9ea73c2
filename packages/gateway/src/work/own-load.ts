import { performance } from 'node:perf_hooks';

/** How long the load is measured before the verdict changes, in milliseconds. */
const measuredMs = 20;
/** Part of the time in which a thread may be busy with its own work and still be idle enough for that of others. */
const busyPart = 1 / 2;

/** Whether this thread has time for the work of other threads. */
export class OwnLoad {
  #since = performance.eventLoopUtilization();
  /** Time spent on the work of others since then. */
  #givenMs = 0;
  #isIdle = true;

  get isIdle(): boolean {
    const { active, idle } = performance.eventLoopUtilization(this.#since);
    if (active + idle < measuredMs) return this.#isIdle;
    this.#isIdle = active - this.#givenMs < busyPart * (active + idle);
    this.#since = performance.eventLoopUtilization();
    this.#givenMs = 0;
    return this.#isIdle;
  }

  /** Reports time that was spent on the work of others. */
  gave(ms: number): void {
    this.#givenMs += ms;
  }
}
