import { X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';
import { type LevelRange, type Store, StoreError } from '@transitd/storage-fsm';
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
import { ClusterError } from '../refusals/cluster-error.ts';
import { isOfFormerAuthority } from './renewal.ts';

export interface OwnEntryParts {
  /** Store of the decrypted records. */
  readonly store: Store;
  readonly changes: ConfigurationChanges;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  /** Returns the certificate (PEM) of the signing authority that the configuration names; undefined before the first rotation. */
  readonly current: () => string | undefined;
  /** Returns the present name, addresses, role and feature levels of this node. */
  readonly self: () => Pick<Member, 'name' | 'apiAddress' | 'clusterAddress' | 'levels' | 'nonVoter'>;
  readonly identity: () => NodeIdentity | undefined;
  /** Stores an identity and puts it in force. */
  readonly setIdentity: (identity: NodeIdentity) => Promise<void>;
}

/**
 * Returns the cluster's signing authority; creates it if the cluster has none yet. Call it only on the active node.
 * @param current - certificate (PEM) of the signing authority that the configuration names; undefined before the first rotation
 * @throws StoreError; Error when the key of the authority is missing
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

/** Adds a newly signed certificate to a member's entry, before the member gets the certificate. @throws StoreError */
export const listCertificate = (
  changes: ConfigurationChanges,
  nodeId: NodeId,
  { fingerprint, authority }: { readonly fingerprint: string; readonly authority: ClusterAuthority },
): Promise<void> =>
  changes.make((_conf, membership) => {
    requireSigner(membership, authority);
    return changed(membership, certificateSigned(membership, nodeId, fingerprint));
  });

/** Refuses a certificate whose authority no longer signs: the present authority must sign it. @throws StoreError `busy` */
export function requireSigner(membership: Membership, { certificate }: ClusterAuthority): void {
  if (!maySign(membership, certificate))
    throw new StoreError('busy', "the cluster's authority was rotated in the meantime: try again");
}

/**
 * Writes the authority's record again after a restore under another root key made it unreadable.
 * @param known - certificate of the signing authority, PEM: from the configuration, or from this node's identity
 * @throws ClusterError `invalid_request` when it is another authority; StoreError
 */
export async function keepAuthority(store: Store, known: string, authority: ClusterAuthority): Promise<void> {
  if (!isAuthority(authority, known)) throw new ClusterError('invalid_request', 'this is not the authority of this cluster');
  try {
    if ((await readAuthority(store)) !== undefined) return;
  } catch (error) {
    if (error instanceof StoreError) throw error;
  }
  // The key of an announced authority is unreadable too: the rotation is withdrawn, and the operator starts it again.
  await store.commit({ conditions: [], writes: [authorityRecord(authority), { path: nextAuthorityPath, value: null }] });
}

function isAuthority(authority: ClusterAuthority, known: string): boolean {
  try {
    return (
      isPair(authority) && fingerprintOf(new X509Certificate(authority.certificate)) === fingerprintOf(new X509Certificate(known))
    );
  } catch {
    return false; // malformed key or certificate
  }
}

/**
 * Keeps the active node's own membership entry up to date: its certificate from the signing authority, its name and its addresses.
 * Returns another member that has this node's new name; this node then keeps its former one.
 * @throws StoreError
 */
export async function updateOwnEntry(parts: OwnEntryParts): Promise<Member | undefined> {
  const { store, changes, clusterId, nodeId, current, self, setIdentity } = parts;
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
    identity = { membersAtJoin: [], ...identity, authority: authority.certificate, key, certificate };
    await setIdentity(identity);
  }
  const fingerprint = fingerprintOf(new X509Certificate(identity.certificate));
  let namesake: Member | undefined;
  await changes.make((_conf, membership) => {
    const present = membership.members.find(({ id }) => id === nodeId);
    const { nonVoter, ...rest } = self();
    // Only a sole member may start under another name. A node may have joined under that name since.
    namesake = membership.members.find(({ id, name }) => id !== nodeId && name === rest.name);
    const wanted =
      present === undefined
        ? { id: nodeId, certificate: fingerprint, nonVoter, ...rest }
        : { ...present, ...rest, name: namesake === undefined ? rest.name : present.name };
    return changed(membership, certificateShown(withMember(membership, wanted), nodeId, fingerprint));
  });
  return namesake;
}

/** The part of a member's report that its membership entry repeats. */
export interface MemberReport {
  readonly apiAddress: string;
  readonly clusterAddress: string;
  /** Fingerprint of the certificate that the member used. */
  readonly certificate: string;
  readonly levels: LevelRange;
}

/**
 * Updates the membership entries from the members' reports: addresses, certificates in use, and supported feature levels.
 * @throws StoreError
 */
export function updateMemberEntries(
  changes: ConfigurationChanges,
  reportOf: (id: NodeId) => MemberReport | undefined,
): Promise<void> {
  return changes.make((_conf, before) => {
    let membership = before;
    for (const member of before.members) {
      const report = reportOf(member.id);
      if (report === undefined) continue;
      const { apiAddress, clusterAddress, certificate, levels } = report;
      membership = withMember(membership, { ...member, apiAddress, clusterAddress, levels });
      membership = certificateShown(membership, member.id, certificate);
    }
    return changed(before, membership);
  });
}

/** Adds a member, or replaces the member with the same id. Returns the same membership when there is nothing to change. */
export function withMember(membership: Membership, member: Member): Membership {
  const others = membership.members.filter(({ id }) => id !== member.id);
  const present = membership.members.find(({ id }) => id === member.id);
  const same = present !== undefined && JSON.stringify(sorted(present)) === JSON.stringify(sorted(member));
  return same ? membership : { ...membership, members: [...others, member] };
}

const sorted = (member: Member): object => Object.fromEntries(Object.entries(member).sort());

const changed = (before: Membership, after: Membership): { membership: Membership } | undefined =>
  before === after ? undefined : { membership: after };
