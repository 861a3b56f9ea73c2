import { type ConfState, majority, type NodeId } from '@transitd/raft-core';

/**
 * Returns the voters whose disks are low, if the other voters are no quorum: the leader then refuses writes until one of these disks has
 * room again. Returns none if writes can commit without them. In a joint configuration, each half needs a majority of its own.
 */
export function lowDisksThatBlock(
  { voters, votersOutgoing }: Pick<ConfState, 'voters' | 'votersOutgoing'>,
  isLow: (id: NodeId) => boolean,
): NodeId[] {
  const blocking = [voters, votersOutgoing].flatMap((half) => {
    const low = half.filter(isLow);
    return low.length > half.length - majority(half.length) ? low : [];
  });
  return [...new Set(blocking)].sort((a, b) => a - b);
}
