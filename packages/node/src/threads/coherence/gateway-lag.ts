import { type ChangeNumber, isAfter } from './messages.ts';

/**
 * Number of checks in a row that must find a change undrained. After a pause of the whole process, the gateway cannot drain before the
 * first check.
 */
const checksMin = 4;

/** Decides whether a gateway lags so long that it has to be replaced. The main thread checks every few hundred milliseconds. */
export class GatewayLag {
  readonly #limitMs: number;
  /** A change that the gateway had not drained at a check, the time of that check, and the number of checks since. */
  #awaited: { readonly number: ChangeNumber; readonly sinceMs: number; checks: number } | undefined;

  /** @param limitMs - how long a gateway may take to drain a change */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Returns whether the gateway has not drained a change for longer than the limit. Changes that arrive meanwhile do not extend it. */
  isTooLong({ published, drained, nowMs }: Readonly<{ published: ChangeNumber; drained: ChangeNumber; nowMs: number }>): boolean {
    if (this.#awaited !== undefined && !isAfter(this.#awaited.number, drained)) this.#awaited = undefined;
    if (this.#awaited === undefined && isAfter(published, drained))
      this.#awaited = { number: published, sinceMs: nowMs, checks: 0 };
    if (this.#awaited === undefined) return false;
    this.#awaited.checks += 1;
    return this.#awaited.checks >= checksMin && nowMs - this.#awaited.sinceMs > this.#limitMs;
  }
}
