import { sign, verify, type X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { LogIndex, NodeId } from '@transitd/raft-core';
import { z } from 'zod';
import type { ClusterAuthority } from './authority.ts';
import { certificatesOf, type Member, parseMembers } from './membership.ts';

/** Members by one committed configuration of one cluster. */
export interface MembershipList {
  readonly clusterId: string;
  /** Of the entry that brought the configuration. */
  readonly index: LogIndex;
  readonly members: readonly Member[];
}

/** A membership list as it travels and is kept: the exact text, and the signature of the cluster's authority over it in base64. */
export interface SignedList {
  readonly text: string;
  readonly signature: string;
}

export interface HeldList extends MembershipList {
  readonly signed: SignedList;
}

/** A list that is not taken: the message says why. */
export class ListRefused extends Error {
  override readonly name = 'ListRefused';
}

/** The authority's key signs certificates too, whose text never begins like this. */
const heading = 'transitd membership list 1\n';
const charactersMax = 56 * 1024;

export const signedList = z.object({ text: z.string().max(charactersMax), signature: z.string().max(256) });
const content = z.strictObject({ clusterId: z.string().max(64), index: z.int().min(1), members: z.array(z.unknown()) });

/** Signs the members of a committed configuration. */
export function signList({ key }: Pick<ClusterAuthority, 'key'>, { clusterId, index, members }: MembershipList): HeldList {
  const text = `${heading}${JSON.stringify({ clusterId, index, members })}`;
  const signature = sign('sha256', Buffer.from(text), key).toString('base64');
  return { clusterId, index, members, signed: { text, signature } };
}

/**
 * Reads a list that another node has shown.
 * @param authorities - certificates of the cluster's authorities that are trusted
 * @throws ListRefused when it is malformed or not signed by one of them
 */
export function openList(shown: unknown, authorities: readonly X509Certificate[]): HeldList {
  const read = signedList.safeParse(shown);
  if (!read.success) throw new ListRefused('it is no membership list');
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

type Members = Pick<MembershipList, 'index' | 'members'>;

export interface ListContext {
  readonly clusterId: string;
  /** The highest signed list that this node has seen. */
  readonly held: Members | undefined;
  /** The newest committed configuration in this node's log. */
  readonly committed: Members;
  /** The node that shows the list, with the fingerprint of the certificate that it used where that is known here. */
  readonly caller: { readonly id: NodeId; readonly certificate?: string };
}

/**
 * The decision about a signed list. `take`: higher than any that was seen. `known`: nothing new. `conflict`: this node knows other members
 * as of the same index, so there are two histories under one cluster id. All else is a reason to refuse it.
 */
export type ListVerdict = 'take' | 'known' | 'conflict' | 'foreign cluster' | 'caller not listed';

export function judgeList(list: MembershipList, { clusterId, held, committed, caller }: ListContext): ListVerdict {
  if (list.clusterId !== clusterId) return 'foreign cluster';
  const named = list.members.find(({ id }) => id === caller.id);
  const isListed =
    named !== undefined && (caller.certificate === undefined || certificatesOf(named).includes(caller.certificate));
  if (!isListed) return 'caller not listed';
  const isOther = (one: Members | undefined): boolean =>
    one !== undefined && one.index === list.index && !sameMembers(one.members, list.members);
  if (isOther(held) || isOther(committed)) return 'conflict';
  return held === undefined || list.index > held.index ? 'take' : 'known';
}

/** In any order: a change of the configuration may list members in another one. */
const sameMembers = (some: readonly Member[], others: readonly Member[]): boolean => isDeepStrictEqual(byId(some), byId(others));
const byId = (members: readonly Member[]): readonly Member[] => [...members].sort((a, b) => a.id - b.id);
