import type { EpochName, ReplicationState } from '@transitd/storage-fsm';

/**
 * Returns what a cluster learns from the epoch of another cluster of its set. `superseded`: the other epoch is higher, or it has the same
 * number and another id; in the second case both clusters are superseded, because neither can know which one is to stay. `lower`: the other
 * cluster is superseded by this one. `same`: nothing.
 */
export function meetingOf(own: EpochName, other: EpochName): 'same' | 'lower' | 'superseded' {
  if (other.number > own.number) return 'superseded';
  if (other.number < own.number) return 'lower';
  return other.id === own.id ? 'same' : 'superseded';
}

/** Returns whether a cluster in this state has to stop its service because the other epoch exists. */
export function isSupersededBy({ role, epochs }: Pick<ReplicationState, 'role' | 'epochs'>, other: EpochName): boolean {
  const own = epochs.at(-1);
  return role === 'primary' && own !== undefined && meetingOf(own, other) === 'superseded';
}
