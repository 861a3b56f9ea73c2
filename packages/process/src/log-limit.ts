import type { Logger } from './logger.ts';

export interface LogLimitOptions {
  readonly log: Logger;
  /** Monotonic, in milliseconds. */
  readonly nowMs: () => number;
  /** At most one line of a kind in this time. */
  readonly everyMs?: number;
}

export type Level = 'info' | 'warn' | 'error';

interface Kind {
  readonly sinceMs: number;
  /** Lines written since then, and how many may be. */
  written: number;
  allowed: number;
  /** Lines left out since the last one that was written. */
  omitted: number;
}

const everyMsDefault = 60_000;
/** Lines of a kind in that time at most, where what they are about ends and begins again. */
const allowedMax = 10;
/** Kinds remembered at a time; the one whose first line is the oldest is forgotten first. */
const kindsMax = 512;

/**
 * Writes lines that may repeat, such as those about a peer that cannot be reached: the first of a kind at once, then at most one a minute,
 * which says in `omitted` how many were left out before it.
 */
export class LogLimit {
  readonly #options: LogLimitOptions;
  readonly #kinds = new Map<string, Kind>();

  constructor(options: LogLimitOptions) {
    this.#options = options;
  }

  /** @param kind - what makes two lines the same, e.g. `unreachable 3` */
  write(level: Level, kind: string, fields: Readonly<Record<string, unknown>>, message: string): void {
    const known = this.#kind(kind);
    if (known.written >= known.allowed) {
      known.omitted += 1;
      return;
    }
    known.written += 1;
    const { omitted } = known;
    known.omitted = 0;
    this.#options.log[level]({ ...fields, ...(omitted > 0 && { omitted }) }, message);
  }

  /**
   * What lines of this kind are about has ended: when it begins again, that is written at once, unless it comes and goes all the time.
   * @returns whether such a line was written before
   */
  ended(kind: string): boolean {
    const known = this.#kinds.get(kind);
    if (known === undefined || known.written === 0) return false;
    known.allowed = Math.min(allowedMax, known.written + 1);
    return true;
  }

  #kind(kind: string): Kind {
    const { nowMs, everyMs = everyMsDefault } = this.#options;
    const known = this.#kinds.get(kind);
    if (known !== undefined && nowMs() - known.sinceMs < everyMs) return known;
    const fresh = { sinceMs: nowMs(), written: 0, allowed: 1, omitted: known?.omitted ?? 0 };
    this.#kinds.delete(kind);
    this.#kinds.set(kind, fresh);
    const [oldest] = this.#kinds.keys();
    if (this.#kinds.size > kindsMax && oldest !== undefined) this.#kinds.delete(oldest);
    return fresh;
  }
}
