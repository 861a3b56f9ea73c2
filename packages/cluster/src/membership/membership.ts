import type { NodeId } from '@transitd/raft-core';
import { z } from 'zod';

/** A node of the cluster, as the replicated list names it. Whether it votes stands in the configuration of the log. */
export interface Member {
  readonly id: NodeId;
  /** `node_id` of its configuration. */
  readonly name: string;
  /** URL of its API. */
  readonly apiAddress: string;
  /** `host:port` of its cluster port. */
  readonly clusterAddress: string;
  /** SHA-256 of the DER of the certificate that it shows, in lower-case hex. */
  readonly certificate: string;
  /** Signed at a renewal and not shown by the node so far: until then both are its own, so an answer that got lost locks nobody out. */
  readonly nextCertificate?: string;
  /** Never to become a voter. */
  readonly nonVoter: boolean;
}

export interface RemovedMember {
  readonly id: NodeId;
  readonly name: string;
  readonly certificate: string;
}

/** Certificates of the cluster's authorities, PEM. Absent in a list of members until the first rotation begins. */
export interface Authorities {
  /** The one that signs. */
  readonly current: string;
  /** Trusted already; it signs as soon as every member holds the configuration that says so. */
  readonly next?: string;
  /** The one before `current`, trusted until no member has one of the certificates named by `fingerprints`: all that it has signed. */
  readonly former?: { readonly certificate: string; readonly fingerprints: readonly string[] };
}

/** Who belongs to the cluster, and who did: `removed` ascends by time. It travels as the context of the log's configuration. */
export interface Membership {
  readonly members: readonly Member[];
  readonly removed: readonly RemovedMember[];
  readonly authorities?: Authorities;
}

export const nobody: Membership = { members: [], removed: [] };

/** How many removed members are remembered at most: one that has been away for longer is a stranger. */
const removedMax = 256;
/** The list lies in the two slots of `node.state`, 64 KiB each, as base64. */
const bytesMax = 40 * 1024;
const format = 1;
/** Of a list that names authorities. */
const formatWithAuthorities = 2;

const id = z
  .int()
  .min(1)
  .max(2 ** 48 - 1);
const name = z.string().regex(/^[\w.-]{1,64}$/);
const certificate = z.string().regex(/^[0-9a-f]{64}$/);
const member = z.strictObject({
  id,
  name,
  apiAddress: z.url({ protocol: /^https?$/ }).max(256),
  clusterAddress: z.string().max(256).refine(isHostAndPort),
  certificate,
  nextCertificate: certificate.exactOptional(),
  nonVoter: z.boolean(),
});
const authority = z
  .string()
  .max(2048)
  .regex(/^-----BEGIN CERTIFICATE-----\n(?:[A-Za-z0-9+/=]{1,76}\n)+-----END CERTIFICATE-----\n?$/);
const content = { members: z.array(member), removed: z.array(z.strictObject({ id, name, certificate })).max(removedMax) };
const list = z.discriminatedUnion('format', [
  z.strictObject({ format: z.literal(format), ...content }),
  z.strictObject({
    format: z.literal(formatWithAuthorities),
    ...content,
    authorities: z.strictObject({
      current: authority,
      next: authority.exactOptional(),
      former: z.strictObject({ certificate: authority, fingerprints: z.array(certificate) }).exactOptional(),
    }),
  }),
]);

/** A member as it is written, in JSON. @throws Error */
export function parseMembers(json: unknown): readonly Member[] {
  const result = z.array(member).safeParse(json);
  if (!result.success) throw new Error('the list of members is not understood');
  return result.data;
}

/**
 * UTF-8 of JSON with a format number. Of the removed members it keeps the newest, 256 at most and as many as fit.
 * @throws Error for a list that no node could read: an ill-formed field, two members with one id or certificate, members alone too long
 */
export function encodeMembership({ members, removed, authorities }: Membership): Uint8Array {
  const named = authorities === undefined ? { format } : { format: formatWithAuthorities, authorities };
  for (let kept = removed.slice(-removedMax); ; kept = kept.slice(1)) {
    const bytes = Buffer.from(JSON.stringify({ ...named, members, removed: kept }));
    if (bytes.length > bytesMax && kept.length > 0) continue;
    decodeMembership(bytes);
    return bytes;
  }
}

/** What `encodeMembership` wrote; nobody when there are no bytes. @throws Error for an unknown format, and for all that is not written */
export function decodeMembership(bytes: Uint8Array): Membership {
  if (bytes.length === 0) return nobody;
  if (bytes.length > bytesMax) throw new Error(`the member list has more than ${bytesMax} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw new Error('the member list is not JSON');
  }
  const result = list.safeParse(json);
  if (!result.success) throw new Error(`the member list has an unknown format at ${result.error.issues[0]?.path.join('.')}`);
  const { members, removed } = result.data;
  const authorities = 'authorities' in result.data ? { authorities: result.data.authorities } : {};
  const all = [...members, ...removed];
  const certificates = all.flatMap(certificatesOf);
  if (new Set(all.map((one) => one.id)).size < all.length) throw new Error('the member list names an id twice');
  if (new Set(certificates).size < certificates.length) throw new Error('the member list names a certificate twice');
  return { members, removed, ...authorities };
}

/** The fingerprints under which a node may appear. */
export const certificatesOf = (node: Pick<Member, 'certificate' | 'nextCertificate'>): readonly string[] =>
  node.nextCertificate === undefined ? [node.certificate] : [node.certificate, node.nextCertificate];

/** Whose certificate this is, and whether it still belongs to the cluster; undefined for a stranger. */
export interface ListedNode {
  readonly id: NodeId;
  readonly memberState: 'member' | 'removed';
}

/** @param fingerprint - as in `Member.certificate` */
export function listedNode({ members, removed }: Membership, fingerprint: string): ListedNode | undefined {
  const present = members.find((one) => certificatesOf(one).includes(fingerprint));
  if (present !== undefined) return { id: present.id, memberState: 'member' };
  const past = removed.find((one) => one.certificate === fingerprint);
  return past === undefined ? undefined : { id: past.id, memberState: 'removed' };
}

/** A certificate was signed for a member: it is listed before the member has it. Replaces an earlier one that was never shown. */
export const certificateSigned = (membership: Membership, node: NodeId, fingerprint: string): Membership =>
  withMember(membership, node, (one) => (one.certificate === fingerprint ? one : { ...one, nextCertificate: fingerprint }));

/** A member showed its renewed certificate: the one before it is nobody's any more. The same list while there is nothing to change. */
export const certificateShown = (membership: Membership, node: NodeId, fingerprint: string): Membership =>
  withMember(membership, node, (one) => {
    if (one.nextCertificate !== fingerprint) return one;
    const { nextCertificate: _, ...rest } = one;
    return { ...rest, certificate: fingerprint };
  });

/** The member becomes one of those removed; the same list when there is no such member. */
export function memberRemoved(membership: Membership, node: NodeId): Membership {
  const gone = membership.members.find((one) => one.id === node);
  if (gone === undefined) return membership;
  const { id, name, certificate } = gone;
  return {
    ...membership,
    members: membership.members.filter((one) => one !== gone),
    removed: [...membership.removed, { id, name, certificate }].slice(-removedMax),
  };
}

function withMember(membership: Membership, node: NodeId, change: (one: Member) => Member): Membership {
  const members = membership.members.map((one) => (one.id === node ? change(one) : one));
  return members.every((one, i) => one === membership.members[i]) ? membership : { ...membership, members };
}

/** `host:port` or `[v6]:port`, as in `Member.clusterAddress`; undefined when it is neither. */
export function parseHostAndPort(text: string): { readonly host: string; readonly port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/@]+)):(\d{1,5})$/.exec(text);
  const [host, port] = [match?.[1] ?? match?.[2], Number(match?.[3])];
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}

function isHostAndPort(text: string): boolean {
  return parseHostAndPort(text) !== undefined;
}
