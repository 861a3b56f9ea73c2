import type { Clock } from '@transitd/raft-core';

const tickMs = 1000;

/** Calls `expired` once after one uninterrupted wait of `limitMs`, accurate to about a second. */
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

  /** Begins a wait, which ends with {@link waitEnded}. */
  waitBegan(): void {
    this.#waiting = true;
    this.#idleMs = 0;
  }

  waitEnded(): void {
    this.#waiting = false;
  }

  stop(): void {
    this.waitEnded();
    this.#stop();
  }
}
