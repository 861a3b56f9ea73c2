import type { SimClock } from '../../fakes/sim-clock.ts';

/**
 * A machine's clock over all incarnations of its node: it may run faster or slower than the world's clock, change its rate, or stand still
 * for a while.
 */
export class LocalClock {
  readonly #world: SimClock;
  #rate: number;
  /** The readings at the last change, which show the same moment. */
  #worldMs = 0;
  #localMs = 0;
  #wallMs = 0;
  #stoppedUntilMs = 0;

  constructor(world: SimClock, rate: number) {
    this.#world = world;
    this.#rate = rate;
  }

  /** Local milliseconds per millisecond of the world, while the clock runs. */
  get rate(): number {
    return this.#rate;
  }

  now(): number {
    return this.#localMs + this.#elapsedMs() * this.#rate;
  }

  /** Returns the machine's time of day, which does not stand still. */
  wallMs(): number {
    return this.#wallMs + (this.#world.now() - this.#worldMs) * this.#rate;
  }

  setRate(rate: number): void {
    this.#note();
    this.#rate = rate;
  }

  /** Stops the clock for this long (a suspended virtual machine); it then continues from the same time. */
  stop(durationMs: number): void {
    this.#note();
    this.#stoppedUntilMs = Math.max(this.#stoppedUntilMs, this.#world.now() + durationMs);
  }

  #elapsedMs(): number {
    return Math.max(0, this.#world.now() - Math.max(this.#worldMs, this.#stoppedUntilMs));
  }

  #note(): void {
    this.#localMs = this.now();
    this.#wallMs = this.wallMs();
    this.#worldMs = this.#world.now();
  }
}
