import type { RecordClock } from '@transitd/process';
import { long, type NodeMemory } from './node-memory.ts';

/**
 * The node's time of day in all threads. The main thread decides which offset of the monotonic clock it trusts; a thread with an offset of
 * its own could accept a token that the main thread refuses as expired.
 */
export class SharedClock implements RecordClock {
  readonly #longs: BigInt64Array;

  constructor({ longs }: NodeMemory) {
    this.#longs = longs;
  }

  /** Only the main thread calls this. @param steadyMs - present time by the trusted offset, in milliseconds since 1970 */
  publish(steadyMs: number, nowNs = process.hrtime.bigint()): void {
    Atomics.store(this.#longs, long.steadyOffsetNs, BigInt(Math.floor(steadyMs)) * 1_000_000n - nowNs);
  }

  nowMs(): number {
    return performance.now();
  }

  utcMs(): number {
    return Math.max(Date.now(), this.#steadyMs());
  }

  dueMs(): number {
    return Math.min(Date.now(), this.#steadyMs());
  }

  #steadyMs(): number {
    return Number((Atomics.load(this.#longs, long.steadyOffsetNs) + process.hrtime.bigint()) / 1_000_000n);
  }
}
