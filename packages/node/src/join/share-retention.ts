import { RateLimited } from '@transitd/access';
import { AddressRate } from './address-rate.ts';

/** How long shares are kept after the newest good one, whoever asks to forget them. */
const keptMs = 60_000;

/** Says why nothing was forgotten. */
export const sharesAreKept = `a share was given less than ${keptMs / 1000} s ago: the shares are kept`;

/**
 * Protects shares that holders have given from callers without a share: anybody may ask this node to forget them, or to join a cluster
 * instead. A wrong share needs no such protection, since it changes nothing.
 */
export class GivenShares {
  readonly #now: () => number;
  readonly #rate: AddressRate;
  #newestMs = Number.NEGATIVE_INFINITY;

  /** @param now - monotonic, in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
    const refusal = 'shares were forgotten at the request of this address already; ask again later';
    this.#rate = new AddressRate({ rate: 1, intervalS: 600, blockIntervalS: 0 }, { refusal, now });
  }

  /** A good share was given. */
  given(): void {
    this.#newestMs = this.#now();
  }

  /** Milliseconds for which the shares are kept still, whoever asks; 0 when they may be forgotten. */
  get keptMs(): number {
    return Math.max(0, this.#newestMs + keptMs - this.#now());
  }

  /** Counts a request that would forget shares. @throws RateLimited */
  admitReset(address: string): void {
    if (this.keptMs > 0) throw new RateLimited(sharesAreKept, { limit: 1, resetS: Math.ceil(this.keptMs / 1000) });
    this.#rate.admit(address);
  }
}
