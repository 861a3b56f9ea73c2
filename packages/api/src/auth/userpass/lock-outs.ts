import type { Clock } from '@transitd/process';

/** Number of failures after which a name is locked, the duration of the lock, and the time for which a failure counts. */
const [failuresMax, lockedMs, forgetAfterMs] = [5, 15 * 60_000, 15 * 60_000];
/** Maximum number of names in memory. The name whose last failure is the oldest is dropped first. */
const namesMax = 65_536;

interface Failures {
  readonly count: number;
  readonly lastMs: number;
}

/** Counts failed logins by name, whether or not the user exists. Kept in memory only, since the active node handles all logins. */
export class LockOuts {
  readonly #clock: Clock;
  /** Ordered by the last failure, oldest first. */
  readonly #failures = new Map<string, Failures>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  isLocked(name: string): boolean {
    const { count, lastMs } = this.#failures.get(name) ?? { count: 0, lastMs: 0 };
    return count >= failuresMax && this.#clock.nowMs() < lastMs + lockedMs;
  }

  recordFailure(name: string): void {
    const { count, lastMs } = this.#failures.get(name) ?? { count: 0, lastMs: 0 };
    this.#failures.delete(name);
    const oldest = this.#failures.size >= namesMax ? this.#failures.keys().next() : undefined;
    if (oldest?.done === false) this.#failures.delete(oldest.value);
    const lately = this.#clock.nowMs() < lastMs + forgetAfterMs;
    this.#failures.set(name, { count: lately ? count + 1 : 1, lastMs: this.#clock.nowMs() });
  }

  /** Clears the failures of a name, after a correct password or a write of the user. */
  forget(name: string): void {
    this.#failures.delete(name);
  }
}
