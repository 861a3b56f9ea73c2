import { admission, type Bucket, type Rate, RateLimited } from '@transitd/access';
import { type Clock, callerGroup } from '@transitd/process';

/** Maximum number of callers that are remembered. The caller with the oldest request is forgotten first. */
const callersMax = 4096;

/** Limits how often each address may make one kind of request. All addresses of an IPv6 /64 count as one caller. */
export class AddressRate {
  readonly #rate: Rate;
  readonly #refusal: string;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  /** @param refusal - the error text */
  constructor(rate: Rate, { refusal, clock }: { readonly refusal: string; readonly clock: Clock }) {
    this.#rate = rate;
    this.#refusal = refusal;
    this.#clock = clock;
  }

  /** Counts one request. @throws RateLimited */
  admit(address: string): void {
    const caller = callerGroup(address);
    const { bucket, admitted, waitMs } = admission(this.#buckets.get(caller), this.#rate, this.#clock.nowMs());
    this.#buckets.delete(caller);
    const oldest = this.#buckets.size >= callersMax ? this.#buckets.keys().next() : undefined;
    if (oldest?.done === false) this.#buckets.delete(oldest.value);
    this.#buckets.set(caller, bucket);
    if (!admitted) throw new RateLimited(this.#refusal, { limit: this.#rate.rate, resetS: Math.ceil(waitMs / 1000) });
  }
}
