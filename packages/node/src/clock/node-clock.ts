import type { Logger } from '@transitd/process';
import { type ClockSample, ClockTrust } from './clock-trust.ts';

/** Reads both clocks of the machine. */
const systemClocks = (): ClockSample => ({ wallMs: Date.now(), monotonicMs: performance.now() });

export interface NodeClockParts {
  readonly log: Logger;
  readonly read?: () => ClockSample;
}

/**
 * This node's time of day, with a second opinion: the time that its monotonic clock gives. A token that
 * either calls expired is refused; a step that cannot be taken back, such as a deletion, waits until it is due by both.
 */
export class NodeClock {
  readonly #log: Logger;
  readonly #read: () => ClockSample;
  readonly #trust: ClockTrust;

  constructor({ log, read = systemClocks }: NodeClockParts) {
    this.#log = log;
    this.#read = read;
    this.#trust = new ClockTrust(read());
  }

  /** By the later of the two, in milliseconds since 1970: for refusing what has expired. */
  readonly now = (): number => {
    const { wallMs, monotonicMs } = this.#read();
    return Math.max(wallMs, this.#trust.steadyMs(monotonicMs));
  };

  /** By the earlier of the two: for deleting, rotating and dating. */
  readonly dueNow = (): number => {
    const { wallMs, monotonicMs } = this.#read();
    return Math.min(wallMs, this.#trust.steadyMs(monotonicMs));
  };

  get isTrusted(): boolean {
    return this.#trust.isTrusted;
  }

  /** Looks at the clocks, at least once a minute; logs when trust is lost, and when it returns. */
  look(): void {
    const change = this.#trust.observe(this.#read());
    if (change === undefined) return;
    const deviationS = Math.round(this.#trust.deviationMs / 1000);
    if (change === 'lost')
      this.#log.error(
        { deviation_s: deviationS },
        'the wall clock departs from the monotonic clock: expired tokens are kept and no key is rotated by time until it is right, or for an hour',
      );
    else if (change === 'returned') this.#log.info('the wall clock agrees with the monotonic clock again: it is trusted');
    else this.#log.warn('the wall clock has differed for an hour: the time that it shows is trusted from now on');
  }

  /** Seconds by which the wall clock is ahead of where the monotonic clock puts it, now. */
  get deviationS(): number {
    const { wallMs, monotonicMs } = this.#read();
    return (wallMs - this.#trust.steadyMs(monotonicMs)) / 1000;
  }
}
