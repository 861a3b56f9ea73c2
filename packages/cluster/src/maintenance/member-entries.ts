import { isDeepStrictEqual } from 'node:util';
import type { NodeId } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import type { ClusterAuthority } from '../membership/authority.ts';
import type { ConfigurationChanges } from '../membership/configuration-changes.ts';
import { certificateShown, certificateSigned, type Member, type Membership } from '../membership/membership.ts';
import { maySign } from '../membership/rotation-phase.ts';
import type { StandbyReport } from '../standbys/standbys.ts';
import type { IssuedNodeCertificate } from './signing-authority.ts';

/** Adds a newly signed certificate to a member's entry, before the member gets the certificate. @throws StoreError */
export async function listCertificate(
  changes: Pick<ConfigurationChanges, 'make'>,
  nodeId: NodeId,
  { fingerprint, authority }: Pick<IssuedNodeCertificate, 'fingerprint' | 'authority'>,
): Promise<void> {
  await changes.make((_conf, membership) => {
    requireSigner(membership, authority);
    return changed(membership, certificateSigned(membership, nodeId, fingerprint));
  });
}

/** Refuses a certificate whose authority no longer signs: the present authority must sign it. @throws StoreError `busy` */
export function requireSigner(membership: Membership, { certificate }: ClusterAuthority): void {
  if (!maySign(membership, certificate))
    throw new StoreError('busy', "the cluster's authority was rotated in the meantime: try again");
}

/** The part of a member's report that its membership entry repeats. */
type MemberReport = Pick<StandbyReport, 'apiAddress' | 'clusterAddress' | 'certificate' | 'levels'>;

/**
 * Updates the membership entries from the members' reports: addresses, certificates in use, and supported feature levels.
 * @throws StoreError
 */
export async function updateMemberEntries(
  changes: Pick<ConfigurationChanges, 'make'>,
  standbys: { report(id: NodeId): MemberReport | undefined },
): Promise<void> {
  await changes.make((_conf, before) => {
    let membership = before;
    for (const member of before.members) {
      const report = standbys.report(member.id);
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
  return isDeepStrictEqual(present, member) ? membership : { ...membership, members: [...others, member] };
}

/** Returns the change of the membership; undefined if there is none. */
export const changed = (before: Membership, after: Membership): { membership: Membership } | undefined =>
  before === after ? undefined : { membership: after };
