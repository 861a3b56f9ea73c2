/** A credential and the time when it expires, in ms since the epoch; undefined if it never expires. */
export interface Credential<T> {
  readonly value: T;
  readonly endsAtMs: number | undefined;
}

/** A credential is replaced this long before it expires, so that it does not expire while a request is in transit. */
const marginMs = 300_000;

/** Keeps a credential until shortly before it expires. Concurrent callers share one request for a new one. */
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

  /** Drops a credential that the provider refused: the next call gets a new one. */
  forget(): void {
    this.#kept = undefined;
  }
}
