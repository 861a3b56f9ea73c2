import type { EpochName, ReplicationState } from '@transitd/storage-fsm';

/**
 * Compares the epoch of this cluster with that of another cluster of its set. `superseded`: the other epoch is higher, or has the same
 * number and another id. In the second case both clusters are superseded, because neither can know which one should remain the primary.
 * `lower`: this cluster supersedes the other one. `same`: both are in one epoch.
 */
export function meetingOf(own: EpochName, other: EpochName): 'same' | 'lower' | 'superseded' {
  if (other.number > own.number) return 'superseded';
  if (other.number < own.number) return 'lower';
  return other.id === own.id ? 'same' : 'superseded';
}

/** Returns whether a cluster in this state must stop serving because of the other epoch. */
export function isSupersededBy({ role, epochs }: Pick<ReplicationState, 'role' | 'epochs'>, other: EpochName): boolean {
  const own = epochs.at(-1);
  return role === 'primary' && own !== undefined && meetingOf(own, other) === 'superseded';
}
