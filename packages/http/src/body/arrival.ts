import { arrivalDeadline } from '../limits/arrival-deadline.ts';

/** A minimum rate: at least `bytesMin` bytes in each window of `windowMs` milliseconds. */
export interface ArrivalRate {
  readonly bytesMin: number;
  readonly windowMs: number;
}

interface ArrivalOptions {
  readonly deadlineMs: number;
  readonly rate: ArrivalRate;
  /** Bytes that have arrived. */
  readonly bytes: () => number;
  readonly onSlow: (reason: string) => void;
}

/** Checks that a body arrives within the deadline and, after `enforceRate`, with the minimum rate in each window. */
export class Arrival {
  readonly #options: ArrivalOptions;
  #endDeadline: (() => void) | undefined;
  #window: NodeJS.Timeout | undefined;

  constructor(options: ArrivalOptions) {
    this.#options = options;
  }

  start(): void {
    const { deadlineMs, onSlow } = this.#options;
    this.#endDeadline = arrivalDeadline(deadlineMs, () => onSlow('did not arrive in time'));
  }

  /** Enforces the minimum rate from now until `stop`. */
  enforceRate(): void {
    if (this.#window !== undefined) return;
    const { rate, bytes, onSlow } = this.#options;
    let before = bytes();
    const check = (): void => {
      if (this.#window !== window) return;
      if (bytes() - before < rate.bytesMin)
        onSlow(`arrives too slowly: ${rate.bytesMin} bytes in ${rate.windowMs} ms are needed`);
      before = bytes();
    };
    // After a stall of this process, the timer is due before the bytes that came meanwhile are read: they count.
    const window = setInterval(() => setImmediate(check), rate.windowMs);
    this.#window = window;
  }

  stop(): void {
    this.#endDeadline?.();
    clearInterval(this.#window);
    this.#window = undefined;
  }
}
