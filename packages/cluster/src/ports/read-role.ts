import { type Grant, isHeld, type ReadMoment } from '@transitd/raft-core';

interface ReadFacts extends ReadMoment {
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
 * Returns how a node may answer a read now; undefined if it may not. The main thread asks for each request, and for the deadlines of its
 * gateways; a gateway asks for each request, with those deadlines and with its own readings of the clocks.
 */
export function readRoleOf(facts: ReadFacts): ReadRole | undefined {
  if (isHeld(facts.lease, facts)) return 'active';
  return isHeld(facts.heartbeat, facts) ? 'reader' : undefined;
}
