import type { ConfState, NodeId } from '../../../types.ts';

const half = (voters: readonly NodeId[], has: (id: NodeId) => boolean): boolean =>
  voters.length === 0 || 2 * voters.filter(has).length > voters.length;

/** Whether these nodes are a quorum of the configuration; written apart from the core's own arithmetic, to check it. */
export const isQuorum = ({ voters, votersOutgoing }: ConfState, has: (id: NodeId) => boolean): boolean =>
  half(voters, has) && half(votersOutgoing, has);

/** Tries all ways to divide the voters: if one part is a quorum of one configuration, the rest is none of the other. */
export function quorumsOverlap(before: ConfState, after: ConfState): boolean {
  const ids = [...new Set([...before.voters, ...before.votersOutgoing, ...after.voters, ...after.votersOutgoing])];
  const bitOf = new Map(ids.map((id, position) => [id, 1 << position]));
  for (let part = 0; part < 1 << ids.length; part++) {
    const within = (id: NodeId): boolean => (part & (bitOf.get(id) ?? 0)) !== 0;
    if (isQuorum(before, within) && isQuorum(after, (id) => !within(id))) return false;
  }
  return true;
}
