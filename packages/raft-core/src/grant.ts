/** A permission to answer reads for a limited time: a leader lease, or an answered heartbeat. Times are readings of one monotonic clock. */
export interface Grant {
  /** When the request was sent whose answer granted it. */
  readonly sentMs: number;
  readonly endMs: number;
}

/** Returns the grant that ends at `endMs`, and was requested at most `lastsMs` before. */
export const grantUntil = (endMs: number, lastsMs: number): Grant => ({ sentMs: endMs - lastsMs, endMs });

/** The moment of a read, as the thread that answers it measures it. */
export interface ReadMoment {
  readonly nowMs: number;
  /** When a clock of the machine last jumped against the monotonic clock; negative infinity if none did. */
  readonly clockJumpedMs: number;
}

/**
 * Returns whether a grant still permits reads. The machine may have been suspended before a clock jump, while the monotonic clock stood
 * still and another node was elected. So a grant that was requested before the jump permits nothing.
 */
export const isHeld = (grant: Grant | undefined, { nowMs, clockJumpedMs }: ReadMoment): grant is Grant =>
  grant !== undefined && grant.sentMs > clockJumpedMs && nowMs < grant.endMs;
