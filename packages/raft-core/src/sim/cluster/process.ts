import { repeatedly, type Scheduler, type SimClock } from '../sim-clock.ts';

/**
 * One run of a node's process: its own clock, which may go faster or slower than the world's, and may be stopped for a while
 * (SIGSTOP, a stalled event loop). What it had planned then comes late, in order; its clock goes on. Dies as a whole.
 */
export class NodeProcess implements Scheduler {
  readonly #world: SimClock;
  readonly #rate: number;
  readonly #offsetMs: number;
  #alive = true;
  #pausedUntilMs = 0;
  /** Called around every task, so that the world can look at what it did. */
  readonly #around: (task: () => void) => void;

  constructor(
    world: SimClock,
    { rate, offsetMs, around }: { readonly rate: number; readonly offsetMs: number; around(task: () => void): void },
  ) {
    this.#world = world;
    this.#rate = rate;
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
    return this.#offsetMs + this.#world.now() * this.#rate;
  }

  after(delayMs: number, task: () => void): void {
    this.#world.after(delayMs / this.#rate, () => this.run(task));
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
