import { ProviderError } from '@transitd/barrier';
import { retryDelayMs } from './retry-delay.ts';

/** Refuses calls for a while after a failure. The delay grows with each further failure. */
export class CallDelay {
  readonly #nowMs: () => number;
  readonly #random: () => number;
  #failures = 0;
  #latest: ProviderError | undefined;
  #retryAtMs = Number.NEGATIVE_INFINITY;

  /**
   * @param nowMs - returns a monotonic time in milliseconds
   * @param random - returns a number from 0 to 1
   */
  constructor(nowMs: () => number, random: () => number) {
    this.#nowMs = nowMs;
    this.#random = random;
  }

  get passed(): boolean {
    return this.#waitMs <= 0;
  }

  /** @throws ProviderError with the latest failure while the delay lasts */
  requirePassed(): void {
    if (this.passed || this.#latest === undefined) return;
    const { failure, message } = this.#latest;
    throw new ProviderError(failure, `${message}; this node tries again in ${Math.ceil(this.#waitMs / 1000)} s`);
  }

  failed(error: ProviderError): void {
    this.#failures += 1;
    this.#latest = error;
    this.#retryAtMs = this.#nowMs() + retryDelayMs(this.#failures, this.#random(), error.retryAfterMs);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#latest = undefined;
    this.#retryAtMs = Number.NEGATIVE_INFINITY;
  }

  get #waitMs(): number {
    return this.#retryAtMs - this.#nowMs();
  }
}
