/** Failures after which a name is locked; how long, and how long without one until they are forgotten. */
const [failuresMax, lockedMs, forgetAfterMs] = [5, 15 * 60_000, 15 * 60_000];
/** Names kept at most; the one that failed longest ago makes room. */
const namesMax = 65_536;

interface Failures {
  readonly count: number;
  readonly lastMs: number;
}

/** Names whose password was guessed wrong, known ones and unknown ones alike: in the memory of this node, which makes all logins while it is active. */
export class LockOuts {
  readonly #now: () => number;
  /** By the time of the last failure. */
  readonly #failures = new Map<string, Failures>();

  constructor({ now }: { readonly now: () => number }) {
    this.#now = now;
  }

  isLocked(name: string): boolean {
    const { count, lastMs } = this.#failures.get(name) ?? { count: 0, lastMs: 0 };
    return count >= failuresMax && this.#now() < lastMs + lockedMs;
  }

  recordFailure(name: string): void {
    const { count, lastMs } = this.#failures.get(name) ?? { count: 0, lastMs: 0 };
    this.#failures.delete(name);
    const oldest = this.#failures.size >= namesMax ? this.#failures.keys().next() : undefined;
    if (oldest?.done === false) this.#failures.delete(oldest.value);
    const lately = this.#now() < lastMs + forgetAfterMs;
    this.#failures.set(name, { count: lately ? count + 1 : 1, lastMs: this.#now() });
  }

  /** A right password, or an operator who wrote the user anew: as if nothing had happened. */
  forget(name: string): void {
    this.#failures.delete(name);
  }
}
