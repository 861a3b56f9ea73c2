import type { ConfState, NodeId } from '@transitd/raft-core';
import type { MemberChange } from '../membership/configuration-changes.ts';
import { certificateShown, type Member, type Membership, memberRemoved, severalNamed } from '../membership/membership.ts';
import { ClusterError } from '../refusals/cluster-error.ts';

/** The leader's contact with the members: it decides whether a change of the voters leaves a majority. */
export interface VoterContact {
  /** This node, the leader. */
  readonly self: NodeId;
  /** Whether a member was heard within an election timeout; true for this node. */
  readonly isActive: (id: NodeId) => boolean;
}

/**
 * Returns the member with this id in decimal. If no member has it, returns the member with this name. An id always selects, because a
 * node chooses its name itself.
 * @throws ClusterError `invalid_request` when several members have the name
 */
export function findMember({ members }: Membership, serverId: string): Member | undefined {
  const identified = members.find(({ id }) => String(id) === serverId);
  if (identified !== undefined) return identified;
  const named = members.filter(({ name }) => name === serverId);
  if (named.length > 1) throw new ClusterError('invalid_request', `${severalNamed(named)}: use an id`);
  return named[0];
}

/** Returns the name of a member, or its id in decimal if {@link findMember} does not find it by its name. */
export function serverIdOf(members: readonly Member[], { id, name }: Pick<Member, 'id' | 'name'>): string {
  const isAmbiguous = members.some((one) => String(one.id) === name || (one.id !== id && one.name === name));
  return isAmbiguous ? String(id) : name;
}

/** Returns whether the newest removed members include one with this name, or with this id in decimal. */
export const wasRemoved = ({ removed }: Membership, serverId: string): boolean =>
  removed.some(({ id, name }) => name === serverId || String(id) === serverId);

/**
 * Returns the change that removes a member; undefined when there is no such member.
 * @param certificate - fingerprint of the certificate that the member used last, which identifies the removed node when it is told of its
 * removal
 * @throws ClusterError `invalid_request` when too few voters would be left
 */
export function removal(
  conf: ConfState,
  membership: Membership,
  { id, certificate, ...contact }: VoterContact & { readonly id: NodeId; readonly certificate: string | undefined },
): MemberChange | undefined {
  const known = certificate === undefined ? membership : certificateShown(membership, id, certificate);
  const after = memberRemoved(known, id);
  if (after === known) return undefined;
  refuseTooFewVoters(conf, id, contact);
  return { members: [{ id, to: 'none' }], membership: after };
}

/**
 * Returns the change that demotes a member, so that it does not vote until it is promoted.
 * @throws ClusterError `invalid_request` when too few voters would be left
 */
export function demotion(
  conf: ConfState,
  membership: Membership,
  { id, ...contact }: VoterContact & { readonly id: NodeId },
): MemberChange | undefined {
  const after = withVote(membership, id, false);
  const votes = conf.voters.includes(id);
  if (after === membership && !votes) return undefined;
  refuseTooFewVoters(conf, id, contact);
  return { members: votes ? [{ id, to: 'learner' }] : [], membership: after };
}

/** Returns the change that promotes a member, so that it votes as soon as it has caught up. */
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
 * Refuses a change that the remaining voters could not commit: with too few of them in contact, neither the change nor any later entry
 * would ever be committed.
 * @throws ClusterError `invalid_request`
 */
export function refuseTooFewVoters({ voters }: ConfState, without: NodeId, { self, isActive }: VoterContact): void {
  if (!voters.includes(without)) return;
  const left = voters.filter((id) => id !== without);
  if (left.length === 0) throw new ClusterError('invalid_request', 'this is the last voter of the cluster');
  const active = left.filter((id) => id === self || isActive(id)).length;
  if (2 * active <= left.length)
    throw new ClusterError(
      'invalid_request',
      `of the ${left.length} remaining voters, only ${active} are reachable: no majority`,
    );
}
