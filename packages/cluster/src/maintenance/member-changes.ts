import { RequestError } from '@transitd/http';
import type { ConfState, NodeId } from '@transitd/raft-core';
import type { MemberChange } from '../membership/configuration-changes.ts';
import { certificateShown, type Member, type Membership, memberRemoved } from '../membership/membership.ts';

/** What the leader knows that decides whether a change of the voters leaves a cluster that works. */
export interface Heard {
  /** This node, which leads. */
  readonly self: NodeId;
  /** Whether that member was heard of a moment ago; true for this node. */
  readonly isHeard: (id: NodeId) => boolean;
}

/** The member that an operator names: by its name, else by its id in decimal. */
export const memberCalled = ({ members }: Membership, serverId: string): Member | undefined =>
  members.find(({ name }) => name === serverId) ?? members.find(({ id }) => String(id) === serverId);

/**
 * The member is one no more; nothing to change when it is none.
 * @param shown - fingerprint of the certificate that it showed last: under it a removed node is told that it was removed
 * @throws RequestError `invalid_request` when too few voters would be left
 */
export function removal(
  conf: ConfState,
  membership: Membership,
  { id, shown, ...heard }: Heard & { readonly id: NodeId; readonly shown: string | undefined },
): MemberChange | undefined {
  const known = shown === undefined ? membership : certificateShown(membership, id, shown);
  const after = memberRemoved(known, id);
  if (after === known) return undefined;
  refuseTooFewVoters(conf, id, heard);
  return { members: [{ id, to: 'none' }], membership: after };
}

/**
 * The member shall not vote, from now on and for good.
 * @throws RequestError `invalid_request` when too few voters would be left
 */
export function demotion(
  conf: ConfState,
  membership: Membership,
  { id, ...heard }: Heard & { readonly id: NodeId },
): MemberChange | undefined {
  const after = withVote(membership, id, false);
  const votes = conf.voters.includes(id);
  if (after === membership && !votes) return undefined;
  refuseTooFewVoters(conf, id, heard);
  return { members: votes ? [{ id, to: 'learner' }] : [], membership: after };
}

/** The member shall vote: it does as soon as it has caught up. */
export function promotion(membership: Membership, id: NodeId): MemberChange | undefined {
  const after = withVote(membership, id, true);
  return after === membership ? undefined : { membership: after };
}

function withVote(membership: Membership, id: NodeId, votes: boolean): Membership {
  const member = membership.members.find((one) => one.id === id);
  if (member === undefined || member.nonVoter !== votes) return membership;
  const members = membership.members.map((one) => (one === member ? { ...one, nonVoter: !votes } : one));
  return { ...membership, members };
}

/**
 * A change of the voters is decided by those that are left: if too few of them are heard of, it would never be committed, nor would
 * anything after it.
 */
export function refuseTooFewVoters({ voters }: ConfState, without: NodeId, { self, isHeard }: Heard): void {
  if (!voters.includes(without)) return;
  const left = voters.filter((id) => id !== without);
  if (left.length === 0) throw new RequestError('invalid_request', 'this is the last voter of the cluster');
  const heard = left.filter((id) => id === self || isHeard(id)).length;
  if (2 * heard <= left.length)
    throw new RequestError(
      'invalid_request',
      `of the ${left.length} voters that would be left, ${heard} can be heard: no majority`,
    );
}
