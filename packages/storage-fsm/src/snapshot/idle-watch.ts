import type { Clock } from '@transitd/raft-core';

const tickMs = 1000;

/** Calls `expired` once when something has been waited for without a break for `limitMs`, to about a second. */
export class IdleWatch {
  readonly #stop: () => void;
  #waiting = false;
  #idleMs = 0;

  constructor({
    limitMs,
    every,
    expired,
  }: { readonly limitMs: number; readonly every: Clock['every']; readonly expired: () => void }) {
    this.#stop = every(tickMs, () => {
      if (!this.#waiting) return;
      this.#idleMs += tickMs;
      if (this.#idleMs < limitMs) return;
      this.stop();
      expired();
    });
  }

  /** Time counts from here until {@link came}. */
  waits(): void {
    this.#waiting = true;
    this.#idleMs = 0;
  }

  came(): void {
    this.#waiting = false;
  }

  stop(): void {
    this.came();
    this.#stop();
  }
}
