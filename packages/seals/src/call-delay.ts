import { ProviderError } from '@transitd/barrier';
import { retryDelayMs } from './retry-delay.ts';

export interface CallDelayParts {
  /** Monotonic, in milliseconds. */
  readonly nowMs: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** Refuses calls for a while after a failure. The delay grows with each further failure. */
export class CallDelay {
  readonly #parts: CallDelayParts;
  #failures = 0;
  #latest: ProviderError | undefined;
  #retryAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: CallDelayParts) {
    this.#parts = parts;
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
    const { nowMs, random } = this.#parts;
    this.#failures += 1;
    this.#latest = error;
    this.#retryAtMs = nowMs() + retryDelayMs(this.#failures, random(), error.retryAfterMs);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#latest = undefined;
    this.#retryAtMs = Number.NEGATIVE_INFINITY;
  }

  get #waitMs(): number {
    return this.#retryAtMs - this.#parts.nowMs();
  }
}
