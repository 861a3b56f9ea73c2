import { outlastedBy } from '@transitd/raft-core';

/**
 * Says until when the owner of a lease may believe that it has it. A term counts from when the request for it was sent: etcd cannot have
 * begun to count it earlier. Its owner ends it so early that it is over when the clock of etcd, or of another node, has counted the whole
 * term. Times are milliseconds of a monotonic clock.
 */
export class LeaseEnd {
  #endMs = Number.NEGATIVE_INFINITY;

  /** The request that was sent at `sentMs` has given the lease this time to live. */
  renewed({ sentMs, ttlSeconds }: { readonly sentMs: number; readonly ttlSeconds: number }): void {
    this.#endMs = Math.max(this.#endMs, sentMs + outlastedBy(ttlSeconds * 1000));
  }

  /** etcd said that the lease has ended, or its owner gave it up. */
  ended(): void {
    this.#endMs = Number.NEGATIVE_INFINITY;
  }

  /** Negative infinity while the lease is not held. */
  get ms(): number {
    return this.#endMs;
  }
}
