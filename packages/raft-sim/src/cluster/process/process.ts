import type { ClockReading } from '@transitd/raft-core';
import { repeatedly, type Scheduler, type SimClock } from '../../fakes/sim-clock.ts';
import type { LocalClock } from './local-clock.ts';

/**
 * One incarnation of a node's process. It uses its machine's clock, and may be paused (SIGSTOP, a stalled event loop): its tasks then run
 * late, in order, while the clock continues. A killed process runs nothing more.
 */
export class NodeProcess implements Scheduler {
  readonly #world: SimClock;
  readonly #clock: LocalClock;
  readonly #offsetMs: number;
  #alive = true;
  #pausedUntilMs = 0;
  /** Called around every task, so that the simulator can check its effect. */
  readonly #around: (task: () => void) => void;

  constructor(
    world: SimClock,
    { clock, offsetMs, around }: { readonly clock: LocalClock; readonly offsetMs: number; around(task: () => void): void },
  ) {
    this.#world = world;
    this.#clock = clock;
    this.#offsetMs = offsetMs;
    this.#around = around;
  }

  get isAlive(): boolean {
    return this.#alive;
  }
  get isPaused(): boolean {
    return this.#world.now() < this.#pausedUntilMs;
  }

  now(): number {
    return this.#offsetMs + this.#clock.now();
  }

  /** Reads the monotonic clock and the time of day, which is rounded down to a millisecond. */
  readClocks(): ClockReading {
    const nowMs = this.now();
    return { beforeMs: nowMs, wallMs: Math.floor(this.#clock.wallMs()), afterMs: nowMs };
  }

  after(delayMs: number, task: () => void): void {
    this.#world.after(delayMs / this.#clock.rate, () => this.run(task));
  }

  afterTurn(task: () => void): void {
    this.after(0, task);
  }

  every(intervalMs: number, task: () => void): () => void {
    return repeatedly(this, intervalMs, task);
  }

  /** Runs the task in this process: now, at the end of a pause, or never if the process is dead by then. */
  run(task: () => void): void {
    if (!this.#alive) return;
    if (this.isPaused) this.#world.after(this.#pausedUntilMs - this.#world.now(), () => this.run(task));
    else this.#around(task);
  }

  pause(durationMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#world.now() + durationMs);
  }

  kill(): void {
    this.#alive = false;
  }
}
