/** A credential and the time when it expires, in ms since the epoch; undefined if it never expires. */
export interface Credential<T> {
  readonly value: T;
  readonly endsAtMs: number | undefined;
}

/**
 * A credential is replaced this long before it expires, in ms, so that it does not expire while a request is in transit; one that lives
 * shorter than twice as long, at half of its lifetime.
 */
const marginMsMax = 300_000;

interface Kept<T> extends Credential<T> {
  readonly renewAtMs: number;
}

/**
 * Keeps a credential until shortly before it expires, or until it expires if there is no other. Concurrent callers share one request for a
 * new one.
 */
export class Expiring<T> {
  readonly #fetch: () => Promise<Credential<T>>;
  readonly #nowMs: () => number;
  #kept: Kept<T> | undefined;
  #fetching: Promise<Kept<T>> | undefined;

  /** @param nowMs - returns ms since the epoch */
  constructor(fetch: () => Promise<Credential<T>>, nowMs: () => number) {
    this.#fetch = fetch;
    this.#nowMs = nowMs;
  }

  async get(): Promise<T> {
    const kept = this.#kept;
    if (kept !== undefined && this.#nowMs() < kept.renewAtMs) return kept.value;
    this.#fetching ??= this.#renew().finally(() => {
      this.#fetching = undefined;
    });
    try {
      this.#kept = await this.#fetching;
      return this.#kept.value;
    } catch (error) {
      const isForgotten = kept === undefined || kept !== this.#kept;
      if (isForgotten || this.#nowMs() >= (kept.endsAtMs ?? Number.POSITIVE_INFINITY)) throw error;
      return kept.value;
    }
  }

  /** Drops a credential that the provider refused: the next call gets a new one. */
  forget(): void {
    this.#kept = undefined;
  }

  async #renew(): Promise<Kept<T>> {
    const credential = await this.#fetch();
    const { endsAtMs } = credential;
    if (endsAtMs === undefined) return { ...credential, renewAtMs: Number.POSITIVE_INFINITY };
    return { ...credential, renewAtMs: endsAtMs - Math.min(marginMsMax, (endsAtMs - this.#nowMs()) / 2) };
  }
}
