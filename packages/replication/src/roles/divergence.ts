import type { LogIndex } from '@transitd/raft-core';
import { type Cursor, continues, type Epoch, sameEpoch } from '@transitd/storage-fsm';

/**
 * Returns the service index up to which the history of this cluster and another history are the same; 0 if they have no epoch in common.
 * Returns undefined if this cluster has nothing that the other history lacks.
 * @param own - the epochs of this cluster
 * @param cursor - the position of this cluster
 * @param other - the epochs of the other history
 */
export function divergenceOf(own: readonly Epoch[], cursor: Cursor, other: readonly Epoch[]): LogIndex | undefined {
  if (continues(other, cursor)) return undefined;
  const last = other.findLastIndex((epoch) => own.some((one) => sameEpoch(one, epoch)));
  const common = other[last];
  if (common === undefined) return 0;
  const ownNext = own[own.findIndex((epoch) => sameEpoch(epoch, common)) + 1];
  return Math.min(...[other[last + 1], ownNext].flatMap((epoch) => (epoch === undefined ? [] : [epoch.start])), cursor.index);
}
