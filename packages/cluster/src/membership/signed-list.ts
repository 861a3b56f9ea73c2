import { sign, verify, type X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { NodeId } from '@transitd/raft-core';
import { z } from 'zod';
import type { ClusterAuthority } from './authority.ts';
import { type CommittedMembers, certificatesOf, type Member, parseMembers } from './membership.ts';

/** The members that one committed configuration of a cluster names. */
export interface ListContent extends CommittedMembers {
  readonly clusterId: string;
}

/** A membership list as it is sent and stored: the exact text, and its signature by the cluster's authority in base64. */
export interface SignedList {
  readonly text: string;
  readonly signature: string;
}

/** A list whose signature was verified, or made here. */
export interface VerifiedList extends ListContent {
  readonly signed: SignedList;
}

/** A membership list was refused: the message says why. */
export class ListRefused extends Error {
  override readonly name = 'ListRefused';
}

/**
 * Separates lists from certificates, which are signed with the same key: the signed bytes of a certificate never begin with this heading.
 */
const heading = 'transitd membership list 1\n';
const charactersMax = 56 * 1024;

export const signedList = z.object({ text: z.string().max(charactersMax), signature: z.string().max(256) });
const content = z.object({ clusterId: z.string().max(64), index: z.int().min(1), members: z.array(z.unknown()) });

/** Signs the members of a committed configuration. @throws ListRefused when no node would read the list, because it is too long */
export function signList({ key }: Pick<ClusterAuthority, 'key'>, { clusterId, index, members }: ListContent): VerifiedList {
  const text = `${heading}${JSON.stringify({ clusterId, index, members })}`;
  if (text.length > charactersMax)
    throw new ListRefused(`the membership list has ${text.length} characters; at most ${charactersMax}`);
  const signature = sign('sha256', Buffer.from(text), key).toString('base64');
  return { clusterId, index, members, signed: { text, signature } };
}

/**
 * Verifies a list from another node.
 * @param authorities - the trusted authorities of the cluster
 * @throws ListRefused when it is malformed or not signed by one of them
 */
export function openList(list: unknown, authorities: readonly X509Certificate[]): VerifiedList {
  const read = signedList.safeParse(list);
  if (!read.success) throw new ListRefused('it is not a membership list');
  const { text, signature } = read.data;
  const isSignedBy = ({ publicKey }: X509Certificate): boolean =>
    verify('sha256', Buffer.from(text), publicKey, Buffer.from(signature, 'base64'));
  if (!text.startsWith(heading) || !authorities.some(isSignedBy))
    throw new ListRefused("it is not signed by the cluster's authority");
  try {
    const { clusterId, index, members } = content.parse(JSON.parse(text.slice(heading.length)));
    return { clusterId, index, members: parseMembers(members), signed: read.data };
  } catch {
    throw new ListRefused('it has an unknown format');
  }
}

/** The node that sent a list, with the fingerprint of its certificate if known. */
export interface ListSender {
  readonly id: NodeId;
  readonly certificate?: string;
}

interface ListContext {
  readonly clusterId: string;
  /** The signed list with the highest index that this node has accepted. */
  readonly newest: CommittedMembers;
  /** The newest committed configuration in this node's log. */
  readonly committed: CommittedMembers;
  readonly caller: ListSender;
}

/**
 * The decision about a signed list. `take`: its index is higher than that of every list accepted before, and not below the committed
 * configuration in this node's log. `known`: nothing new. `conflict`:
 * this node knows other members at the same index, so two histories exist under one cluster id. The other verdicts are reasons to refuse
 * the list.
 */
export type ListVerdict = 'take' | 'known' | 'conflict' | 'foreign cluster' | 'caller not listed';

export function judgeList(list: ListContent, { clusterId, newest, committed, caller }: ListContext): ListVerdict {
  if (list.clusterId !== clusterId) return 'foreign cluster';
  const named = list.members.find(({ id }) => id === caller.id);
  const isListed =
    named !== undefined && (caller.certificate === undefined || certificatesOf(named).includes(caller.certificate));
  if (!isListed) return 'caller not listed';
  const isOther = (one: CommittedMembers): boolean => one.index === list.index && !sameMembers(one.members, list.members);
  if (isOther(newest) || isOther(committed)) return 'conflict';
  return list.index > newest.index && list.index >= committed.index ? 'take' : 'known';
}

/** Compares two lists of members without regard to order: a configuration change may reorder the members. */
const sameMembers = (some: readonly Member[], others: readonly Member[]): boolean => isDeepStrictEqual(byId(some), byId(others));
const byId = (members: readonly Member[]): readonly Member[] => [...members].sort((a, b) => a.id - b.id);
