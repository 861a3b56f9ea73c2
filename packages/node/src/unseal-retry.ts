import { ProviderError, type ProviderHealth } from '@transitd/barrier';
import type { Clock } from '@transitd/process';
import { retryDelayMs } from '@transitd/seals';
import { StoreError } from '@transitd/storage-fsm';

/**
 * When a sealed node unseals itself again. A provider that fails delays its own calls. But a provider that serves may return a key that
 * does not open this node's records, and records that the key opens may be unreadable: without a delay here, the node would ask for that
 * key, or unseal and seal itself, every second.
 */
export class UnsealRetry {
  readonly #clock: Clock;
  readonly #random: () => number;
  #failures = 0;
  #dueAtMs = Number.NEGATIVE_INFINITY;
  #health: ProviderHealth | undefined;

  /** @param random - returns a number from 0 to 1 */
  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  get isDue(): boolean {
    return this.#clock.nowMs() >= this.#dueAtMs;
  }

  /** Unhealthy if the provider serves, but not with the key that opens the records; otherwise undefined. */
  get health(): ProviderHealth | undefined {
    return this.#health;
  }

  failed(error: unknown): void {
    if (error instanceof StoreError) return;
    const isOfProvider = error instanceof ProviderError;
    if (isOfProvider && error.failure !== 'wrong_key') {
      this.succeeded();
      return;
    }
    this.#health ??= { healthy: false, unhealthySinceMs: this.#clock.utcMs(), failure: 'wrong_key' };
    if (!isOfProvider) this.#delay();
  }

  /** The key opened the records, but the services could not be loaded from them. A store that failed is asked again without a delay. */
  notLoaded(error: unknown): void {
    this.#health = undefined;
    if (!(error instanceof StoreError)) this.#delay();
  }

  succeeded(): void {
    this.#failures = 0;
    this.#dueAtMs = Number.NEGATIVE_INFINITY;
    this.#health = undefined;
  }

  #delay(): void {
    this.#failures += 1;
    this.#dueAtMs = this.#clock.nowMs() + retryDelayMs(this.#failures, this.#random());
  }
}
