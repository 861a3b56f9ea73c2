/** Clocks of two machines may run at rates that differ by this part. */
const driftMax = 0.05;

/**
 * Says until when the owner of a lease may believe that it has it. A term counts from when the request for it was sent: etcd cannot have
 * begun to count it earlier. Times are milliseconds of a monotonic clock.
 */
export class LeaseClock {
  #endMs = Number.NEGATIVE_INFINITY;

  /** The request that was sent at `sentMs` has given the lease this time to live. */
  renewed({ sentMs, ttlSeconds }: { readonly sentMs: number; readonly ttlSeconds: number }): void {
    this.#endMs = Math.max(this.#endMs, sentMs + ttlSeconds * 1000 * (1 - driftMax));
  }

  /** etcd said that the lease has ended, or its owner gave it up. */
  ended(): void {
    this.#endMs = Number.NEGATIVE_INFINITY;
  }

  /** Negative infinity while the lease is not held. */
  get endMs(): number {
    return this.#endMs;
  }
}
