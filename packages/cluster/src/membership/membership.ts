import type { LogIndex, NodeId } from '@transitd/raft-core';
import type { LevelRange } from '@transitd/storage-fsm';
import { z } from 'zod';
import { levelRange } from './member-levels.ts';

/** A member as the membership names it. Whether it votes is in the Raft configuration. */
export interface Member {
  readonly id: NodeId;
  /** `node_id` of its configuration. */
  readonly name: string;
  /** URL of the node's API. */
  readonly apiAddress: string;
  /** `host:port` of the node's cluster port. */
  readonly clusterAddress: string;
  /** SHA-256 of the DER of the node's certificate, in lower-case hex. */
  readonly certificate: string;
  /**
   * Fingerprint of a renewed certificate that the node has not used yet. Both certificates are valid until then, so a lost answer locks no
   * node out.
   */
  readonly nextCertificate?: string;
  /** Whether this member never becomes a voter. */
  readonly nonVoter: boolean;
  /** The feature levels that this member announced last: the level is raised only to one that every member supports. */
  readonly levels: LevelRange;
}

export interface RemovedMember {
  readonly id: NodeId;
  readonly name: string;
  readonly certificate: string;
}

/** Certificates of the cluster's authorities, PEM. A membership names them from the first rotation on. */
export interface Authorities {
  /** The signing authority. */
  readonly current: string;
  /** The announced authority, which is trusted already. It signs as soon as every member has stored the configuration that names it. */
  readonly next?: string;
  /** The authority before `current`. `fingerprints` are all certificates that it signed; it is trusted until no member has any of them. */
  readonly former?: { readonly certificate: string; readonly fingerprints: readonly string[] };
}

/** The members that a committed configuration names, and the index of its log entry. */
export interface CommittedMembers {
  readonly index: LogIndex;
  readonly members: readonly Member[];
}

/** Before the first configuration. No log entry has the index 0. */
export const noCommittedMembers: CommittedMembers = { index: 0, members: [] };

/** The members of the cluster, and the removed ones, oldest first. Stored as the context of the Raft configuration. */
export interface Membership {
  readonly members: readonly Member[];
  readonly removed: readonly RemovedMember[];
  readonly authorities?: Authorities;
}

export const noMembers: Membership = { members: [], removed: [] };

/** Limit of removed members: a member removed earlier is unknown. */
const removedMax = 256;
/** The membership is stored as base64 in both slots of `node.state`, 64 KiB each. */
const bytesMax = 40 * 1024;
const format = 1;

export const nodeIdMax = 2 ** 48 - 1;

/** One PEM block. */
export const pem = (label: string, charactersMax: number) => {
  const error = `is not one ${label} in PEM of at most ${charactersMax} characters`;
  const block = new RegExp(`^-----BEGIN ${label}-----\n(?:[A-Za-z0-9+/=]{1,76}\n)+-----END ${label}-----\n?$`);
  return z.string(error).max(charactersMax, error).regex(block, error);
};

const id = z.int().min(1).max(nodeIdMax);
const name = z.string().regex(/^[\w.-]{1,64}$/);
const certificate = z.string().regex(/^[0-9a-f]{64}$/);
// Fields that only a later release knows are kept: a node of this release may change the list while it is the active one.
export const memberSchema = z.looseObject({
  id,
  name,
  apiAddress: z.url({ protocol: /^https?$/ }).max(256),
  clusterAddress: z.string().max(256).refine(isHostAndPort),
  certificate,
  nextCertificate: certificate.exactOptional(),
  nonVoter: z.boolean(),
  levels: levelRange,
});
const authority = pem('CERTIFICATE', 2048);
const list = z.looseObject({
  format: z.literal(format),
  members: z.array(memberSchema),
  removed: z.array(z.looseObject({ id, name, certificate })).max(removedMax),
  authorities: z
    .looseObject({
      current: authority,
      next: authority.exactOptional(),
      former: z.looseObject({ certificate: authority, fingerprints: z.array(certificate) }).exactOptional(),
    })
    .exactOptional(),
});

/** Parses members from their stored JSON. @throws Error */
export function parseMembers(json: unknown): readonly Member[] {
  const result = z.array(memberSchema).safeParse(json);
  if (!result.success) throw new Error('the list of members has an unknown format');
  return result.data;
}

/**
 * Encodes as UTF-8 of JSON with a format number. Keeps the newest removed members: at most 256, and as many as fit.
 * @throws Error for a membership that no node could read: a malformed field, two nodes with one id or certificate, members too long
 */
export function encodeMembership({ members, removed, ...others }: Membership): Uint8Array {
  for (let kept = removed.slice(-removedMax); ; kept = kept.slice(1)) {
    const bytes = Buffer.from(JSON.stringify({ format, members, removed: kept, ...others }));
    if (bytes.length > bytesMax && kept.length > 0) continue;
    decodeMembership(bytes);
    return bytes;
  }
}

/**
 * Decodes the output of `encodeMembership`. Zero bytes stand for a membership without members. Fields that this release does not know are
 * kept, and encoded again. @throws Error for an unknown format or any other bytes
 */
export function decodeMembership(bytes: Uint8Array): Membership {
  if (bytes.length === 0) return noMembers;
  if (bytes.length > bytesMax) throw new Error(`the member list has more than ${bytesMax} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw new Error('the member list is not JSON');
  }
  const result = list.safeParse(json);
  if (!result.success) throw new Error(`the member list has an unknown format at ${result.error.issues[0]?.path.join('.')}`);
  const { format: _, ...membership } = result.data;
  const { members, removed } = membership;
  const all = [...members, ...removed];
  const certificates = all.flatMap(certificatesOf);
  if (new Set(all.map((one) => one.id)).size < all.length) throw new Error('the member list names an id twice');
  if (new Set(certificates).size < certificates.length) throw new Error('the member list names a certificate twice');
  return membership;
}

/** Returns the fingerprints of a node's valid certificates. */
export const certificatesOf = (node: Pick<Member, 'certificate' | 'nextCertificate'>): readonly string[] =>
  node.nextCertificate === undefined ? [node.certificate] : [node.certificate, node.nextCertificate];

/** The node that a certificate belongs to, and whether it still is a member. */
export interface ListedNode {
  readonly id: NodeId;
  readonly memberState: 'member' | 'removed';
}

/** Returns the node with this certificate; undefined for an unknown one. @param fingerprint - as in `Member.certificate` */
export function listedNode({ members, removed }: Membership, fingerprint: string): ListedNode | undefined {
  const present = members.find((one) => certificatesOf(one).includes(fingerprint));
  if (present !== undefined) return { id: present.id, memberState: 'member' };
  const past = removed.find((one) => one.certificate === fingerprint);
  return past === undefined ? undefined : { id: past.id, memberState: 'removed' };
}

/** Describes members with one name, for an error. Names are unique, but not in every stored membership. */
export const severalNamed = (members: readonly Member[]): string =>
  `the members with the ids ${members.map(({ id }) => id).join(', ')} have the same name ${members[0]?.name}`;

/** Adds a newly signed certificate to a member's entry, before the member gets it. Replaces an earlier one that the member never used. */
export const certificateSigned = (membership: Membership, node: NodeId, fingerprint: string): Membership =>
  withEntry(membership, node, (one) => (one.certificate === fingerprint ? one : { ...one, nextCertificate: fingerprint }));

/** Drops the former certificate of a member that has used its renewed one. Returns the same membership when there is nothing to change. */
export const certificateShown = (membership: Membership, node: NodeId, fingerprint: string): Membership =>
  withEntry(membership, node, (one) => {
    if (one.nextCertificate !== fingerprint) return one;
    const { nextCertificate: _, ...rest } = one;
    return { ...rest, certificate: fingerprint };
  });

/** Moves a member to the list of removed members. Returns the same membership when there is no such member. */
export function memberRemoved(membership: Membership, node: NodeId): Membership {
  const leaving = membership.members.find((one) => one.id === node);
  if (leaving === undefined) return membership;
  const { id, name, certificate } = leaving;
  return {
    ...membership,
    members: membership.members.filter((one) => one !== leaving),
    removed: [...membership.removed, { id, name, certificate }].slice(-removedMax),
  };
}

function withEntry(membership: Membership, node: NodeId, change: (one: Member) => Member): Membership {
  const members = membership.members.map((one) => (one.id === node ? change(one) : one));
  return members.every((one, i) => one === membership.members[i]) ? membership : { ...membership, members };
}

/**
 * Parses `host:port` or `[v6]:port`, as in `Member.clusterAddress`; returns undefined for any other string, and for a host that no URL has:
 * connections are opened by URL.
 */
export function parseHostAndPort(text: string): { readonly host: string; readonly port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/\\@?#%]+)):(\d{1,5})$/.exec(text);
  const [host, port] = [match?.[1] ?? match?.[2], Number(match?.[3])];
  return host === undefined || port < 1 || !URL.canParse(`wss://${text}`) ? undefined : { host, port };
}

export function isHostAndPort(text: string): boolean {
  return parseHostAndPort(text) !== undefined;
}
