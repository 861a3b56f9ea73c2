import type { NodeId } from '../types.ts';
import { majority, majorityValue } from './majority.ts';

/** The halves that decide: one, or two while `votersOutgoing` is not empty, each by its own majority (Raft §6). */
export interface Halves {
  readonly voters: readonly NodeId[];
  readonly votersOutgoing: readonly NodeId[];
}

/**
 * Returns the highest value that a quorum reaches: an index stored, a round answered, a time of the last message. A node in both halves
 * counts in both.
 */
export function quorumValue({ voters, votersOutgoing }: Halves, valueFor: (id: NodeId) => number): number {
  const incoming = majorityValue(voters, valueFor);
  return votersOutgoing.length === 0 ? incoming : Math.min(incoming, majorityValue(votersOutgoing, valueFor));
}

export type VoteResult = 'won' | 'lost' | 'pending';

/**
 * Returns the result of a vote; `lost` once the missing answers can no longer make a quorum. `voteOf`: granted, refused, or not answered.
 */
export function voteResult({ voters, votersOutgoing }: Halves, voteOf: (id: NodeId) => boolean | undefined): VoteResult {
  const results = [majorityVote(voters, voteOf), ...(votersOutgoing.length > 0 ? [majorityVote(votersOutgoing, voteOf)] : [])];
  if (results.includes('lost')) return 'lost';
  return results.includes('pending') ? 'pending' : 'won';
}

function majorityVote(voters: readonly NodeId[], voteOf: (id: NodeId) => boolean | undefined): VoteResult {
  const granted = voters.filter((id) => voteOf(id) === true).length;
  const refused = voters.filter((id) => voteOf(id) === false).length;
  if (granted >= majority(voters.length)) return 'won';
  return voters.length - refused < majority(voters.length) ? 'lost' : 'pending';
}
