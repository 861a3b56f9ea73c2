/**
 * Whether this process may say of itself that it leads. One that stood still (stopped, swapped out, a virtual machine moved) goes on with
 * what it knew: it takes requests, and old answers of its peers that waited in buffers, before it learns that another one leads. So
 * it counts as awake again only under a lease, which answers to rounds that it sent since then give it.
 */
export class Wakefulness {
  readonly #limitMs: number;
  #tickMs: number;
  #stoodStill = false;

  /** @param limitMs the election timeout: so long without a tick, and another one may have been elected. */
  constructor(limitMs: number, nowMs: number) {
    this.#limitMs = limitMs;
    this.#tickMs = nowMs;
  }

  /** Consensus runs. */
  ticked(nowMs: number): void {
    this.#stoodStill ||= nowMs - this.#tickMs >= this.#limitMs;
    this.#tickMs = nowMs;
  }

  isAwake(nowMs: number, holdsLease: () => boolean): boolean {
    if (nowMs - this.#tickMs >= this.#limitMs) return false;
    if (this.#stoodStill && holdsLease()) this.#stoodStill = false;
    return !this.#stoodStill;
  }
}
