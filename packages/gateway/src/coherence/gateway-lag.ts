import { type ChangeNumber, isAfter } from './messages.ts';

/** Looks at which a change must be undrained. After a pause of the whole process, the first look comes before the gateway could drain. */
const looksMin = 4;

/** Decides whether a gateway lags so long that it has to be replaced. The main thread looks at it every few hundred milliseconds. */
export class GatewayLag {
  readonly #limitMs: number;
  /** A change that the gateway had not drained when the main thread looked, and the time of that look. */
  #awaited: { readonly number: ChangeNumber; readonly sinceMs: number; looks: number } | undefined;

  /** @param limitMs - how long a gateway may take to drain a change */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Returns whether the gateway has not drained a change for longer than the limit. Changes that arrive meanwhile do not extend it. */
  isTooLong({ published, drained, nowMs }: Readonly<{ published: ChangeNumber; drained: ChangeNumber; nowMs: number }>): boolean {
    if (this.#awaited !== undefined && !isAfter(this.#awaited.number, drained)) this.#awaited = undefined;
    if (this.#awaited === undefined && isAfter(published, drained))
      this.#awaited = { number: published, sinceMs: nowMs, looks: 0 };
    if (this.#awaited === undefined) return false;
    this.#awaited.looks += 1;
    return this.#awaited.looks >= looksMin && nowMs - this.#awaited.sinceMs > this.#limitMs;
  }
}
