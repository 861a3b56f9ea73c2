import { X509Certificate } from 'node:crypto';
import { RequestError } from '@transitd/http';
import type { NodeId } from '@transitd/raft-core';
import { type Store, StoreError } from '@transitd/storage-fsm';
import {
  authorityPath,
  authorityRecord,
  type ClusterAuthority,
  isPair,
  makeAuthority,
  makeRequest,
  nextAuthorityPath,
  readAuthority,
  signRequest,
} from '../membership/authority.ts';
import { fingerprintOf, renewalDue } from '../membership/certificate.ts';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import type { NodeIdentity } from '../membership/identity.ts';
import { certificateShown, certificateSigned, type Member, type Membership } from '../membership/membership.ts';
import { isSameAuthority, maySign } from '../membership/rotation-phase.ts';
import { isOfFormerAuthority } from './renewal.ts';

export interface OwnEntryParts {
  /** The records in clear. */
  readonly store: Store;
  readonly changes: ConfigurationChanges;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  /** The authority that signs, PEM; undefined before the first rotation. */
  readonly current: () => string | undefined;
  /** By what this node is to be found. */
  readonly self: () => Pick<Member, 'name' | 'apiAddress' | 'clusterAddress' | 'nonVoter'>;
  readonly identity: () => NodeIdentity | undefined;
  /** Puts an identity in force, durably. */
  readonly become: (identity: NodeIdentity) => Promise<void>;
}

/**
 * The cluster's authority that signs; the first call on the active node of a cluster without one makes it.
 * @param current - PEM of the one that the configuration names; undefined before the first rotation
 * @throws StoreError; Error when the key of that one is not there
 */
export async function authorityOf(store: Store, clusterId: string, current?: string): Promise<ClusterAuthority> {
  for (;;) {
    const present = await readAuthority(store);
    if (current !== undefined) return signingAuthority(store, present, current);
    if (present !== undefined) return present;
    const made = authorityRecord(await makeAuthority(clusterId, new Date()));
    await store.commit({ conditions: [{ path: authorityPath, revision: 0 }], writes: [made] });
  }
}

async function signingAuthority(store: Store, present: ClusterAuthority | undefined, current: string): Promise<ClusterAuthority> {
  if (present !== undefined && isSameAuthority(present.certificate, current)) return present;
  const next = await readAuthority(store, nextAuthorityPath);
  if (next !== undefined && isSameAuthority(next.certificate, current)) return next;
  throw new Error("the key of the cluster's authority is missing");
}

/** Lists a certificate that was signed for a member, before the member has it. @throws StoreError */
export const listCertificate = (
  changes: ConfigurationChanges,
  nodeId: NodeId,
  { fingerprint, authority }: { readonly fingerprint: string; readonly authority: ClusterAuthority },
): Promise<void> =>
  changes.make((_conf, membership) => {
    requireSigner(membership, authority);
    return changed(membership, certificateSigned(membership, nodeId, fingerprint));
  });

/** A certificate that was signed while the authority changed is listed nowhere: it has to be signed again. @throws StoreError `busy` */
export function requireSigner(membership: Membership, { certificate }: ClusterAuthority): void {
  if (!maySign(membership, certificate)) throw new StoreError('busy', "the cluster's authority has just been rotated");
}

/**
 * Writes the authority again whose record a restore has made unreadable: it lies there under keys that are not the cluster's any more.
 * @param known - PEM of the certificate of the one that signs: as the configuration names it, or as this node was told at its own join
 * @throws RequestError `invalid_request` when this is not that authority; StoreError
 */
export async function keepAuthority(store: Store, known: string, authority: ClusterAuthority): Promise<void> {
  if (!isAuthority(authority, known)) throw new RequestError('invalid_request', 'this is not the authority of this cluster');
  try {
    if ((await readAuthority(store)) !== undefined) return;
  } catch (error) {
    if (error instanceof StoreError) throw error;
  }
  // One that was announced lies under lost keys too: the rotation is withdrawn, and begun again by the operator.
  await store.commit({ conditions: [], writes: [authorityRecord(authority), { path: nextAuthorityPath, value: null }] });
}

function isAuthority(authority: ClusterAuthority, known: string): boolean {
  try {
    return (
      isPair(authority) && fingerprintOf(new X509Certificate(authority.certificate)) === fingerprintOf(new X509Certificate(known))
    );
  } catch {
    return false; // no key, or no certificate
  }
}

/**
 * What the active node does for itself as a member: it has a certificate of the cluster's authority, and stands in the member list as it is
 * to be found now. @throws StoreError
 */
export async function updateOwnEntry(parts: OwnEntryParts): Promise<void> {
  const { store, changes, clusterId, nodeId, current, self, become } = parts;
  let identity = parts.identity();
  const isDue =
    identity === undefined ||
    renewalDue(new X509Certificate(identity.certificate), Date.now()) ||
    isOfFormerAuthority(identity, current());
  if (identity === undefined || isDue) {
    const authority = await authorityOf(store, clusterId, current());
    const { key, request } = await makeRequest(nodeId);
    const certificate = await signRequest(authority, { request, now: new Date(), clusterId, nodeId });
    await listCertificate(changes, nodeId, { fingerprint: fingerprintOf(new X509Certificate(certificate)), authority });
    identity = { seeds: [], ...identity, authority: authority.certificate, key, certificate };
    await become(identity);
  }
  const fingerprint = fingerprintOf(new X509Certificate(identity.certificate));
  await changes.make((_conf, membership) => {
    const present = membership.members.find(({ id }) => id === nodeId);
    const { nonVoter, ...found } = self();
    const wanted =
      present === undefined ? { id: nodeId, certificate: fingerprint, nonVoter, ...found } : { ...present, ...found };
    return changed(membership, certificateShown(withMember(membership, wanted), nodeId, fingerprint));
  });
}

/** What members say of themselves, as far as the list does not say so yet. */
export interface MemberNews {
  readonly apiAddress: string;
  readonly clusterAddress: string;
  /** Fingerprint of what the member showed. */
  readonly certificate: string;
}

/** Keeps the list to what the members themselves say: where they are, and which certificate they use by now. @throws StoreError */
export function updateMemberEntries(
  changes: ConfigurationChanges,
  newsOf: (id: NodeId) => MemberNews | undefined,
): Promise<void> {
  return changes.make((_conf, before) => {
    let membership = before;
    for (const member of before.members) {
      const news = newsOf(member.id);
      if (news === undefined) continue;
      const { apiAddress, clusterAddress, certificate } = news;
      membership = withMember(membership, { ...member, apiAddress, clusterAddress });
      membership = certificateShown(membership, member.id, certificate);
    }
    return changed(before, membership);
  });
}

/** The list with this member in it, in the place of the one of its id; the same list while there is nothing to change. */
export function withMember(membership: Membership, member: Member): Membership {
  const others = membership.members.filter(({ id }) => id !== member.id);
  const present = membership.members.find(({ id }) => id === member.id);
  const same = present !== undefined && JSON.stringify(sorted(present)) === JSON.stringify(sorted(member));
  return same ? membership : { ...membership, members: [...others, member] };
}

const sorted = (member: Member): object => Object.fromEntries(Object.entries(member).sort());

const changed = (before: Membership, after: Membership): { membership: Membership } | undefined =>
  before === after ? undefined : { membership: after };
