/**
 * Whether this process may say of itself that it leads. One that stood still (stopped, swapped out, a virtual machine moved) goes on with
 * what it knew: it takes requests, and old answers of its peers that waited in buffers, before it learns that another one leads. So
 * it counts as awake again only under a lease, which answers to rounds that it sent since then give it, or when it has asked a quorum
 * itself: a hand-over that failed leaves a leader without leases for the rest of its term.
 */
export class Wakefulness {
  readonly #limitMs: number;
  /** When consensus was last seen to run. */
  #ranMs: number;
  #stoodStill = false;
  /** When that was noticed by another clock than this one. */
  #stoodStillMs = Number.NEGATIVE_INFINITY;

  /** @param limitMs what a lease lasts at most: so long without a tick, and another one may have been elected. */
  constructor(limitMs: number, nowMs: number) {
    this.#limitMs = limitMs;
    this.#ranMs = nowMs;
  }

  /** The process or its clock stood still, whatever this clock says: only what is confirmed from now on counts. */
  stoodStill(nowMs: number): void {
    this.#stoodStill = true;
    this.#stoodStillMs = nowMs;
  }

  /** Consensus runs. */
  ticked(nowMs: number): void {
    this.#look(nowMs);
    this.#ranMs = nowMs;
  }

  /** @param holdsLease - asked at this moment; a node that is its own majority always does */
  isAwake(nowMs: number, holdsLease: () => boolean): boolean {
    this.#look(nowMs);
    if (this.#stoodStill && holdsLease()) this.#wake(nowMs);
    return !this.#stoodStill;
  }

  /** A quorum has confirmed the lead to this node, which asked at `askedMs`. It counts for as long as a lease from then. */
  confirmed(nowMs: number, askedMs: number): void {
    this.#look(nowMs);
    if (nowMs - askedMs < this.#limitMs && askedMs > this.#stoodStillMs) this.#wake(nowMs);
  }

  #wake(nowMs: number): void {
    this.#stoodStill = false;
    this.#ranMs = nowMs;
  }

  #look(nowMs: number): void {
    this.#stoodStill ||= nowMs - this.#ranMs >= this.#limitMs;
  }
}
