/**
 * Decides whether this process may claim to lead. A process that was paused (stopped, swapped out, on a virtual machine that was moved)
 * continues with old knowledge: it accepts requests, and old messages of its peers from its buffers, before it learns that another node
 * leads. So it counts as awake again only when it holds a lease, which needs answers to heartbeats sent since the pause, or when a quorum
 * has confirmed its leadership. The second case exists because a leader has no leases for the rest of its term after a failed leadership
 * transfer.
 */
export class Wakefulness {
  readonly #limitMs: number;
  /** When consensus last ran. */
  #ranMs: number;
  #wasPaused = false;
  /** When a jump of another clock showed a pause. */
  #pausedMs = Number.NEGATIVE_INFINITY;

  /**
   * @param limitMs - longest lease: after this time without a tick another node may have been elected. A paused process keeps its
   * connections, so no other node suspects it and votes early.
   */
  constructor(limitMs: number, nowMs: number) {
    this.#limitMs = limitMs;
    this.#ranMs = nowMs;
  }

  /** Records a pause that another clock showed: only a confirmation that is requested after it counts. */
  paused(nowMs: number): void {
    this.#wasPaused = true;
    this.#pausedMs = nowMs;
  }

  /** Records that consensus runs. */
  ticked(nowMs: number): void {
    this.#checkPause(nowMs);
    this.#ranMs = nowMs;
  }

  /** @param holdsLease - whether a lease holds now; a node that is a majority by itself always holds one */
  isAwake(nowMs: number, holdsLease: boolean): boolean {
    this.#checkPause(nowMs);
    if (this.#wasPaused && holdsLease) this.#wake(nowMs);
    return !this.#wasPaused;
  }

  /**
   * Records that a quorum confirmed the leadership of this node. The confirmation counts for the length of a lease from `requestedMs`, the
   * time when it was requested, which is later than now if the clock went back meanwhile.
   */
  confirmed(nowMs: number, requestedMs: number): void {
    this.#checkPause(nowMs);
    const isRecent = requestedMs <= nowMs && nowMs - requestedMs < this.#limitMs;
    if (isRecent && requestedMs > this.#pausedMs) this.#wake(nowMs);
  }

  #wake(nowMs: number): void {
    this.#wasPaused = false;
    this.#ranMs = nowMs;
  }

  #checkPause(nowMs: number): void {
    this.#wasPaused ||= nowMs - this.#ranMs >= this.#limitMs;
  }
}
