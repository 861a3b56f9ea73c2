import type { Clock } from '@transitd/process';
import type { JSONWebKeySet } from 'jose';

/** How long keys are used without asking their provider, and how long while it gives none. */
const [freshMs, keptMs] = [5 * 60_000, 60 * 60_000];
/** Minimum time between two fetches that logins cause: callers with forged tokens must not make this node call a provider in a loop. */
const refetchMs = 1000;

interface Attempt {
  readonly beganMs: number;
  readonly keys: Promise<JSONWebKeySet>;
  /** Infinity while it runs. */
  endedMs: number;
}

/** The keys of one provider, in memory. They are fetched again when they are old, or when a token names another key. */
export class ProviderKeys {
  readonly #fetch: () => Promise<JSONWebKeySet>;
  /** Milliseconds of a clock that is never set. */
  readonly #clock: Clock;
  /** The keys of the last successful fetch, with the time when it began. */
  #known: { readonly keys: JSONWebKeySet; readonly atMs: number } | undefined;
  #last: Attempt | undefined;
  /** Whether the last fetch that has ended failed. */
  #isFailing = false;

  /** @param fetch - ends within a bounded time */
  constructor(fetch: () => Promise<JSONWebKeySet>, clock: Clock) {
    this.#fetch = fetch;
    this.#clock = clock;
  }

  /**
   * Returns the keys, at most five minutes old; at most an hour if the provider gives none. Logins do not wait again for a provider that
   * has just failed.
   * @throws the error of the fetch
   */
  current(): JSONWebKeySet | Promise<JSONWebKeySet> {
    const known = this.#known;
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : this.#clock.nowMs() - known.atMs;
    if (known !== undefined && ageMs < freshMs) return known.keys;
    const wasFailing = this.#isFailing;
    const newest = this.newest();
    if (known === undefined || ageMs >= keptMs) return newest;
    const kept = newest.catch(() => known.keys);
    return wasFailing ? known.keys : kept;
  }

  /**
   * Returns the keys of a fetch that is running, that began within the last second, or that begins now.
   * @param sinceMs - a fetch that has ended since then counts too, so that a login waits for one fetch only
   * @throws the error of the fetch
   */
  newest(sinceMs = this.#clock.nowMs()): Promise<JSONWebKeySet> {
    const last = this.#last;
    const isRecent = last !== undefined && (last.endedMs >= sinceMs || this.#clock.nowMs() - last.beganMs < refetchMs);
    return isRecent ? last.keys : this.fetch();
  }

  /** Fetches the keys now. @throws the error of the fetch */
  fetch(): Promise<JSONWebKeySet> {
    const attempt: Attempt = { beganMs: this.#clock.nowMs(), keys: this.#fetch(), endedMs: Number.POSITIVE_INFINITY };
    this.#last = attempt;
    attempt.keys.then(
      (keys) => this.#ended(attempt, keys),
      () => this.#ended(attempt),
    );
    return attempt.keys;
  }

  #ended(attempt: Attempt, keys?: JSONWebKeySet): void {
    attempt.endedMs = this.#clock.nowMs();
    this.#isFailing = keys === undefined;
    // A fetch that took long must not replace the keys of a later one.
    if (keys !== undefined && (this.#known === undefined || this.#known.atMs <= attempt.beganMs))
      this.#known = { keys, atMs: attempt.beganMs };
  }
}
