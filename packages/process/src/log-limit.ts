import { type Clock, systemClock } from './clock.ts';
import type { Logger } from './logger.ts';

export interface LogLimitOptions {
  readonly log: Logger;
  /** The machine's clock by default. */
  readonly clock?: Clock;
  /** Interval in which at most one line of a kind is written; a minute by default. */
  readonly everyMs?: number;
}

export type Level = 'info' | 'warn' | 'error';

interface Kind {
  readonly sinceMs: number;
  /** Number of lines written since then, and the maximum of that number. */
  written: number;
  allowed: number;
  /** Number of lines omitted since the last written line. */
  omitted: number;
}

const everyMsDefault = 60_000;
/** Maximum number of lines of a kind in an interval, for a condition that ends and starts repeatedly. */
const allowedMax = 10;
/** Maximum number of kinds to remember; the kind whose first line is the oldest is forgotten first. */
const kindsMax = 512;

/**
 * Limits log lines that may repeat, such as those about an unreachable peer. The first line of a kind is written at once, later ones at
 * most once a minute, with the number of lines omitted before it in `omitted`.
 */
export class LogLimit {
  readonly #options: LogLimitOptions;
  readonly #kinds = new Map<string, Kind>();

  constructor(options: LogLimitOptions) {
    this.#options = options;
  }

  /** @param kind - lines of the same kind count together, e.g. `unreachable 3` */
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
   * Records the end of the condition that lines of this kind report. When the condition starts again, its first line is written at
   * once. If the condition starts and ends repeatedly, at most ten lines are written in an interval.
   * @returns whether a line of this kind was written before
   */
  ended(kind: string): boolean {
    const known = this.#kinds.get(kind);
    if (known === undefined || known.written === 0) return false;
    known.allowed = Math.min(allowedMax, known.written + 1);
    return true;
  }

  #kind(kind: string): Kind {
    const { clock = systemClock, everyMs = everyMsDefault } = this.#options;
    const nowMs = clock.nowMs();
    const known = this.#kinds.get(kind);
    if (known !== undefined && nowMs - known.sinceMs < everyMs) return known;
    const fresh = { sinceMs: nowMs, written: 0, allowed: 1, omitted: known?.omitted ?? 0 };
    this.#kinds.delete(kind);
    this.#kinds.set(kind, fresh);
    const [oldest] = this.#kinds.keys();
    if (this.#kinds.size > kindsMax && oldest !== undefined) this.#kinds.delete(oldest);
    return fresh;
  }
}
