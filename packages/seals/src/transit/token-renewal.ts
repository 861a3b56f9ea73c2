import type { Logger } from '@transitd/process';
import type { ProviderAnswer } from '../http/exchange.ts';
import { failureOf, renewalIn, type TransitKey, ttlIn } from './answers.ts';

export interface TokenRenewalParts {
  readonly key: TransitKey;
  readonly log: Logger;
  /** Monotonic, in milliseconds. */
  readonly nowMs: () => number;
  /** Sends a request with this token. */
  readonly send: (token: string, method: 'GET' | 'POST', path: string) => Promise<ProviderAnswer>;
}

/** Delay before a failed renewal is repeated, and minimum time between two renewals. */
const [retryMs, intervalMsMin] = [60_000, 5_000];

/** Renews the token of a transit seal when half of its lifetime has passed. A new token in the file is renewed at once. */
export class TokenRenewal {
  readonly #parts: TokenRenewalParts;
  #token = '';
  #dueMs = Number.NEGATIVE_INFINITY;

  constructor(parts: TokenRenewalParts) {
    this.#parts = parts;
  }

  /** Renews the token if that is due; never rejects. */
  async renewIfDue(token: string): Promise<void> {
    const { log, nowMs } = this.#parts;
    if (token === this.#token && nowMs() < this.#dueMs) return;
    this.#token = token;
    this.#dueMs = nowMs() + retryMs;
    try {
      const ttlS = await this.#renew(token);
      this.#dueMs = ttlS === 0 ? Number.POSITIVE_INFINITY : nowMs() + Math.max(intervalMsMin, ttlS * 500);
    } catch (error) {
      log.warn(
        { reason: (error as Error).message },
        'the token of the transit seal could not be renewed; the next attempt is in one minute',
      );
    }
  }

  /** Returns the remaining lifetime in seconds; 0: it does not expire, or cannot be renewed. */
  async #renew(token: string): Promise<number> {
    const { key, send, log } = this.#parts;
    const answer = await send(token, 'POST', '/v1/auth/token/renew-self');
    if (answer.status === 200) {
      const { ttlS, renewable } = renewalIn(answer, key);
      if (renewable || ttlS === 0) return ttlS;
      this.#warn(ttlS);
      return 0;
    }
    if (answer.status !== 400) throw failureOf(answer, key);
    // A token that cannot be renewed, such as a root token.
    const ttlS = ttlIn(await send(token, 'GET', '/v1/auth/token/lookup-self'), key);
    if (ttlS > 0) this.#warn(ttlS);
    else log.info('the token of the transit seal does not expire');
    return 0;
  }

  #warn(ttlS: number): void {
    this.#parts.log.warn(
      { ttlS },
      'the token of the transit seal cannot be renewed: give this node another token before this one expires, preferably a periodic token',
    );
  }
}
