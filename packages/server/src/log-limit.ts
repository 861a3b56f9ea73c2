import type { Logger } from './log.ts';

export interface LogLimitOptions {
  readonly log: Logger;
  /** Monotonic, in milliseconds. */
  readonly nowMs: () => number;
  /** At most one line of a kind in this time. */
  readonly everyMs?: number;
}

export type Level = 'info' | 'warn' | 'error';

interface Kind {
  readonly loggedMs: number;
  /** Lines left out since then. */
  omitted: number;
}

const everyMsDefault = 60_000;
/** Kinds remembered at a time; the one that was logged longest ago is forgotten first. */
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

  /** @param kind - what makes two lines the same, e.g. `unreachable 3 ECONNREFUSED` */
  write(level: Level, kind: string, fields: Readonly<Record<string, unknown>>, message: string): void {
    const { log, nowMs, everyMs = everyMsDefault } = this.#options;
    const known = this.#kinds.get(kind);
    if (known !== undefined && nowMs() - known.loggedMs < everyMs) {
      known.omitted += 1;
      return;
    }
    this.#kinds.delete(kind);
    this.#kinds.set(kind, { loggedMs: nowMs(), omitted: 0 });
    const [oldest] = this.#kinds.keys();
    if (this.#kinds.size > kindsMax && oldest !== undefined) this.#kinds.delete(oldest);
    log[level]({ ...fields, ...(known && known.omitted > 0 && { omitted: known.omitted }) }, message);
  }

  /** The next line of this kind is written at once: the condition has ended. @returns whether such a line was written before */
  ended(kind: string): boolean {
    return this.#kinds.delete(kind);
  }
}
