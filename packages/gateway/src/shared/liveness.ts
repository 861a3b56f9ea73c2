import { long, type NodeMemory } from './node-memory.ts';

/**
 * Shows that the main thread runs. A gateway reports good health only while it does, because a blocked main thread acknowledges nothing.
 */
export class Liveness {
  readonly #longs: BigInt64Array;

  constructor({ longs }: NodeMemory) {
    this.#longs = longs;
  }

  /** The main thread calls this in a timer. */
  tick(nowNs = process.hrtime.bigint()): void {
    Atomics.store(this.#longs, long.aliveNs, nowNs);
  }

  /** Returns whether the main thread has run within the last `limitMs`. */
  isAlive(limitMs: number, nowNs = process.hrtime.bigint()): boolean {
    return nowNs - Atomics.load(this.#longs, long.aliveNs) <= BigInt(limitMs) * 1_000_000n;
  }
}
