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

export interface ReadFacts extends ReadMoment {
  /** The leader lease of this node; undefined if it holds none. */
  readonly lease: Grant | undefined;
  /** The newest answered heartbeat whose commit index this node has applied; undefined if there is none, or if standby reads are off. */
  readonly heartbeat: Grant | undefined;
}

/**
 * How a node may respond from its own state: as the active node, or as a reader, which is a performance standby with a fresh enough state.
 */
export type ReadRole = 'active' | 'reader';

/**
 * Returns whether a grant still permits reads. The machine may have been suspended before a clock jump, while the monotonic clock stood
 * still and another node was elected. So a grant that was requested before the jump permits nothing.
 */
export const isHeld = (grant: Grant | undefined, { nowMs, clockJumpedMs }: ReadMoment): grant is Grant =>
  grant !== undefined && grant.sentMs > clockJumpedMs && nowMs < grant.endMs;

/**
 * Returns how a node may answer a read now; undefined if it may not. The main thread asks for each request, and for the deadlines of its
 * gateways; a gateway asks for each request, with those deadlines and with its own readings of the clocks.
 */
export function readRoleOf(facts: ReadFacts): ReadRole | undefined {
  if (isHeld(facts.lease, facts)) return 'active';
  return isHeld(facts.heartbeat, facts) ? 'reader' : undefined;
}
