import { performance } from 'node:perf_hooks';

/** How long the load is measured before the verdict changes, in milliseconds. */
const measuredMs = 20;
/** Part of the time in which a thread may be busy with its own work and still be idle enough for that of others. */
const busyPart = 1 / 2;

/**
 * Whether this thread has time for the work of other threads. Its load is measured only while it does none of their work: during such work
 * it does its own in between, and the two cannot be told apart.
 */
export class OwnLoad {
  #since = performance.eventLoopUtilization();
  #activeMs = 0;
  #idleMs = 0;
  #hasTime = true;
  #isGiving = false;

  /** Also false while the thread does the work of another one. */
  get isIdle(): boolean {
    if (this.#isGiving) return false;
    this.#measure();
    const totalMs = this.#activeMs + this.#idleMs;
    if (totalMs < measuredMs) return this.#hasTime;
    this.#hasTime = this.#activeMs < busyPart * totalMs;
    this.#activeMs = 0;
    this.#idleMs = 0;
    return this.#hasTime;
  }

  /** Does work of another thread, which must not overlap with other such work. */
  async give(work: () => Promise<void>): Promise<void> {
    this.#measure();
    this.#isGiving = true;
    try {
      await work();
    } finally {
      this.#isGiving = false;
      this.#since = performance.eventLoopUtilization();
    }
  }

  #measure(): void {
    const now = performance.eventLoopUtilization();
    const { active, idle } = performance.eventLoopUtilization(now, this.#since);
    this.#activeMs += active;
    this.#idleMs += idle;
    this.#since = now;
  }
}
