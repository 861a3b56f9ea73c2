/** A credential and when it ends, in ms since the epoch; undefined: it does not end. */
export interface Credential<T> {
  readonly value: T;
  readonly endsAtMs: number | undefined;
}

/** A credential is replaced this long before its end, so that no request is sent with one that ends on the way. */
const marginMs = 300_000;

/** Keeps a credential until shortly before its end. Concurrent callers share one request for it. */
export class Expiring<T> {
  readonly #fetch: () => Promise<Credential<T>>;
  readonly #nowMs: () => number;
  #kept: Credential<T> | undefined;
  #fetching: Promise<Credential<T>> | undefined;

  /** @param nowMs - returns ms since the epoch */
  constructor(fetch: () => Promise<Credential<T>>, nowMs: () => number) {
    this.#fetch = fetch;
    this.#nowMs = nowMs;
  }

  async get(): Promise<T> {
    const kept = this.#kept;
    if (kept !== undefined && (kept.endsAtMs === undefined || this.#nowMs() < kept.endsAtMs - marginMs)) return kept.value;
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    this.#kept = await this.#fetching;
    return this.#kept.value;
  }

  /** The provider has refused the credential: the next call gets another one. */
  forget(): void {
    this.#kept = undefined;
  }
}
