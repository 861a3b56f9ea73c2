import { long, type NodeMemory } from './node-memory.ts';

/**
 * `lease`: this node may answer as the active node. `read`: it may answer reads as a performance standby. `active`: it is the active node
 * of a cluster that takes no part in replication.
 */
export type DeadlineName = keyof typeof indexOf;

const indexOf = { lease: long.leaseEndNs, read: long.readEndNs, active: long.activeEndNs } as const;

/** Returns the deadlines in the memory of a node, by their names. */
export const deadlinesIn = (memory: NodeMemory): Readonly<Record<DeadlineName, Deadline>> => ({
  lease: new Deadline(memory, 'lease'),
  read: new Deadline(memory, 'read'),
  active: new Deadline(memory, 'active'),
});

/**
 * A time until which every gateway may rely on something that the main thread knows. The main thread calls {@link end} before the act that
 * ends it: before it sends TimeoutNow, steps down, accepts a higher term, seals, is removed, or reports a state digest mismatch.
 */
export class Deadline {
  readonly #longs: BigInt64Array;
  readonly #index: number;

  constructor({ longs }: NodeMemory, name: DeadlineName) {
    this.#longs = longs;
    this.#index = indexOf[name];
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
