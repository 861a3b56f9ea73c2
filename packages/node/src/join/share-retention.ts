import { RateLimited } from '@transitd/access';
import type { Clock } from '@transitd/process';
import { AddressRate } from './address-rate.ts';

/** How long shares are kept after the newest valid one, even if a caller asks to discard them. */
const retentionMs = 60_000;

/** The reason for which the shares were not discarded. */
export const sharesRetained = `a share was given less than ${retentionMs / 1000} s ago: the shares are kept`;

/**
 * Protects the shares given so far from callers without a token, who may ask the node to discard them or to join a cluster instead. Wrong
 * shares need no protection: they change nothing.
 */
export class ShareRetention {
  readonly #clock: Clock;
  readonly #rate: AddressRate;
  #newestMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
    const refusal = 'this address has already had shares discarded; try again later';
    this.#rate = new AddressRate({ rate: 1, intervalS: 600, blockIntervalS: 0 }, { refusal, clock });
  }

  /** Starts the retention again: a valid share was given. */
  shareAccepted(): void {
    this.#newestMs = this.#clock.nowMs();
  }

  /** Milliseconds for which the shares are still kept; 0 when they may be discarded. */
  get remainingMs(): number {
    return Math.max(0, this.#newestMs + retentionMs - this.#clock.nowMs());
  }

  /** Counts a request that discards the shares. @throws RateLimited */
  admitDiscard(address: string): void {
    if (this.remainingMs > 0) throw new RateLimited(sharesRetained, { limit: 1, resetS: Math.ceil(this.remainingMs / 1000) });
    this.#rate.admit(address);
  }
}
