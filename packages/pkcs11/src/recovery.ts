import type { Pkcs11FailureCode } from './failure.ts';

/** Failures of one token in a row after which its library is initialized again. */
const failuresMax = 3;

const isTokenFault = (code: Pkcs11FailureCode | undefined): boolean => code === 'token_failed' || code === 'token_not_found';

/**
 * Decides when a library is initialized again. Libraries look for tokens when they are initialized, and some never find one again that was
 * away for a while, whatever is asked of them (`CKR_GENERAL_ERROR` for ever). Initializing ends the sessions of all tokens of the library,
 * so it is done for a token that keeps failing, and not more often than in every interval. A token is counted by itself: the answers of
 * another one, which is well, say nothing about it.
 */
export class Recovery {
  readonly #intervalMs: number;
  readonly #failures = new Map<string, number>();
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /**
   * Takes note of a call. @returns whether the library is to be initialized before the next one
   * @param token - names the token that was asked
   * @param code - of the failure; absent for a call that went well
   * @param nowMs - of a monotonic clock
   */
  isDue(token: string, code: Pkcs11FailureCode | undefined, nowMs: number): boolean {
    if (!isTokenFault(code)) {
      this.#failures.delete(token);
      return false;
    }
    const failures = (this.#failures.get(token) ?? 0) + 1;
    this.#failures.set(token, failures);
    if (failures < failuresMax || nowMs - this.#lastMs < this.#intervalMs) return false;
    this.#failures.clear();
    this.#lastMs = nowMs;
    return true;
  }
}
