import type { ConfState, NodeId } from '@transitd/raft-core';

const half = (voters: readonly NodeId[], has: (id: NodeId) => boolean): boolean =>
  voters.length === 0 || 2 * voters.filter(has).length > voters.length;

/** Returns whether these nodes are a quorum of the configuration; independent of the core's own arithmetic, to check it. */
export const isQuorum = ({ voters, votersOutgoing }: ConfState, has: (id: NodeId) => boolean): boolean =>
  half(voters, has) && half(votersOutgoing, has);

/** Tries every way to divide the voters: if one part is a quorum of one configuration, the rest must not be a quorum of the other. */
export function quorumsOverlap(before: ConfState, after: ConfState): boolean {
  const ids = [...new Set([...before.voters, ...before.votersOutgoing, ...after.voters, ...after.votersOutgoing])];
  const bitOf = new Map(ids.map((id, position) => [id, 1 << position]));
  for (let part = 0; part < 1 << ids.length; part++) {
    const within = (id: NodeId): boolean => (part & (bitOf.get(id) ?? 0)) !== 0;
    if (isQuorum(before, within) && isQuorum(after, (id) => !within(id))) return false;
  }
  return true;
}
