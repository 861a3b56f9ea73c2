import type { Pkcs11FailureCode } from './failure.ts';

/** Number of consecutive failures of one token after which its library is initialized again. */
const failuresMax = 3;

const isTokenFault = (code: Pkcs11FailureCode | undefined): boolean => code === 'token_failed' || code === 'token_not_found';

/**
 * Decides when to initialize a library again. Libraries search for tokens when they are initialized, and some never find a token
 * again after it was temporarily unavailable (permanent `CKR_GENERAL_ERROR`). Initializing ends the sessions of all tokens of the
 * library, so it happens only if a token keeps failing, and at most once per interval. Failures are counted per token, since other
 * tokens may work.
 */
export class Recovery {
  readonly #intervalMs: number;
  readonly #failures = new Map<string, number>();
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /**
   * Records the result of a call. Returns whether to initialize the library before the next one.
   * @param token - name of the token
   * @param code - of the failure; undefined for a successful call
   * @param nowMs - time of a monotonic clock
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
