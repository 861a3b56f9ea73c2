import type { ClockDispute, ClockDisputes, TimeSource } from '@transitd/access';
import type { Logger, RecordClock } from '@transitd/process';
import { type ClockSample, ClockTrust } from './clock-trust.ts';

/** Reads the wall clock and the monotonic clock. */
const systemClocks = (): ClockSample => ({ wallMs: Date.now(), monotonicMs: performance.now() });

/**
 * The node's time of day, from two sources: the wall clock, and the monotonic clock counted from when the wall clock was last trusted. A
 * token that is expired by either is refused. An irreversible step, such as a deletion, waits until it is due by both.
 */
export class NodeClock implements RecordClock, ClockDisputes {
  readonly #log: Logger;
  readonly #read: () => ClockSample;
  readonly #trust: ClockTrust;
  readonly #listeners = new Set<(right: TimeSource, aheadMs: number) => void>();

  constructor(log: Logger, read: () => ClockSample = systemClocks) {
    this.#log = log;
    this.#read = read;
    this.#trust = new ClockTrust(read());
  }

  nowMs(): number {
    return performance.now();
  }

  utcMs(): number {
    const { wallMs, monotonicMs } = this.#read();
    return Math.max(wallMs, this.#trust.steadyMs(monotonicMs));
  }

  dueMs(): number {
    const { wallMs, monotonicMs } = this.#read();
    return Math.min(wallMs, this.#trust.steadyMs(monotonicMs));
  }

  /** Returns the time by the trusted offset of the monotonic clock, in milliseconds since 1970. */
  get steadyMs(): number {
    return this.#trust.steadyMs(this.#read().monotonicMs);
  }

  get isTrusted(): boolean {
    return this.#trust.isTrusted;
  }

  /** Returns the present dispute of the two clocks: the wall clock is not trusted. */
  current(): ClockDispute | undefined {
    this.compare();
    const { deviationMs } = this.#trust;
    if (this.#trust.isTrusted) return undefined;
    return { differenceMs: Math.floor(Math.abs(deviationMs)), earlier: deviationMs > 0 ? 'steady' : 'wall' };
  }

  /** Reports `steady` when the wall clock agrees again, and `wall` when its time is accepted. Returns a function that ends the reports. */
  onDecided(listener: (right: TimeSource, aheadMs: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Compares the clocks and logs each change of trust; to be called at least once a minute. */
  compare(): void {
    const sample = this.#read();
    const aheadMs = sample.wallMs - this.#trust.steadyMs(sample.monotonicMs);
    const change = this.#trust.observe(sample);
    if (change === undefined) return;
    if (change !== 'lost') for (const listener of this.#listeners) listener(change === 'returned' ? 'steady' : 'wall', aheadMs);
    const deviationS = Math.round(this.#trust.deviationMs / 1000);
    if (change === 'lost')
      this.#log.error(
        { deviation_s: deviationS },
        'the wall clock deviates from the monotonic clock: check the time of this machine. Until it agrees again, for an hour at most, ' +
          'no expired token is deleted and no key is rotated or trimmed by time',
      );
    else if (change === 'returned') this.#log.info('the wall clock agrees with the monotonic clock again: it is trusted');
    else this.#log.warn('the wall clock has differed for an hour: its time is trusted from now on');
  }

  /** Seconds by which the wall clock is now ahead of the monotonic clock's time. */
  get deviationS(): number {
    const { wallMs, monotonicMs } = this.#read();
    return (wallMs - this.#trust.steadyMs(monotonicMs)) / 1000;
  }
}
