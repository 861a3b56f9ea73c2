import { long, type NodeMemory } from './node-memory.ts';

/**
 * Returns the deadlines in the memory of a node. `lease`: this node may answer as the active node. `read`: it may answer reads as a
 * performance standby. `active`: it is the active node of a cluster that takes no part in replication.
 */
export const deadlinesIn = ({ longs }: NodeMemory) => ({
  lease: new Deadline(longs, long.leaseEndNs),
  read: new Deadline(longs, long.readEndNs),
  active: new Deadline(longs, long.activeEndNs),
});

/**
 * A time until which every gateway may rely on something that the main thread knows. The main thread calls {@link end} before the act that
 * ends it: before it sends TimeoutNow, steps down, accepts a higher term, seals, is removed, or reports a state digest mismatch.
 */
export class Deadline {
  readonly #longs: BigInt64Array;
  readonly #index: number;

  constructor(longs: BigInt64Array, index: number) {
    this.#longs = longs;
    this.#index = index;
  }

  /** Sets the end. @param endNs - on the clock of `process.hrtime.bigint()` */
  set(endNs: bigint): void {
    Atomics.store(this.#longs, this.#index, endNs);
  }

  /** Ends it at once, for every thread. */
  end(): void {
    Atomics.store(this.#longs, this.#index, 0n);
  }

  /** Returns the time until the end, in milliseconds; negative after it. */
  remainingMs(nowNs = process.hrtime.bigint()): number {
    return Number(Atomics.load(this.#longs, this.#index) - nowNs) / 1e6;
  }

  holds(nowNs = process.hrtime.bigint()): boolean {
    return this.remainingMs(nowNs) > 0;
  }
}
