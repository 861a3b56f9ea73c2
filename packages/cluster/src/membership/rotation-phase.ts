import { X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';
import { fingerprintOf } from './certificate.ts';
import { type Authorities, certificatesOf, type Member, type Membership } from './membership.ts';

/**
 * The phase of a rotation of the cluster's authority. `announced`: the new authority is trusted but signs nothing until every member has
 * stored the configuration that names it. `switched`: the new authority signs; the old one is trusted until no member has a certificate
 * that it signed.
 */
export type RotationPhase = 'none' | 'announced' | 'switched';

export function phaseOf(authorities: Authorities | undefined): RotationPhase {
  if (authorities?.next !== undefined) return 'announced';
  return authorities?.former === undefined ? 'none' : 'switched';
}

/** Whether a member has stored the configuration that announces the new authority. */
type HasAnnouncement = (id: NodeId) => boolean;

/** Returns the members that the rotation waits for; empty while no rotation is in progress. */
export function blockingMembers({ members, authorities }: Membership, hasAnnouncement: HasAnnouncement): readonly Member[] {
  const phase = phaseOf(authorities);
  if (phase === 'announced') return members.filter(({ id }) => !hasAnnouncement(id));
  const old = new Set(authorities?.former?.fingerprints);
  return phase === 'none' ? [] : members.filter((member) => certificatesOf(member).some((one) => old.has(one)));
}

/**
 * Announces the authority `next`, which is then trusted in addition to `current`. Returns the same membership during another rotation, or
 * if `current` is not the signing authority.
 */
export function announced(membership: Membership, current: string, next: string): Membership {
  const { authorities } = membership;
  const isCurrent = authorities === undefined || isSameAuthority(authorities.current, current);
  return phaseOf(authorities) === 'none' && isCurrent ? { ...membership, authorities: { current, next } } : membership;
}

/** Withdraws the announced authority, which has signed nothing. */
export function withdrawn(membership: Membership): Membership {
  const { authorities } = membership;
  return authorities?.next === undefined ? membership : { ...membership, authorities: { current: authorities.current } };
}

/**
 * Returns the membership in the next phase of a rotation; the same membership while the rotation waits for members, or none is in progress.
 */
export function advanced(membership: Membership, hasAnnouncement: HasAnnouncement): Membership {
  const { authorities, members } = membership;
  if (authorities === undefined || blockingMembers(membership, hasAnnouncement).length > 0) return membership;
  const { current, next, former } = authorities;
  if (next !== undefined) {
    const fingerprints = members.flatMap(certificatesOf);
    return { ...membership, authorities: { current: next, former: { certificate: current, fingerprints } } };
  }
  return former === undefined ? membership : { ...membership, authorities: { current } };
}

/** Whether an authority may sign for this membership. @param certificate - PEM */
export const maySign = ({ authorities }: Membership, certificate: string): boolean =>
  authorities === undefined || isSameAuthority(authorities.current, certificate);

/** Returns the authorities that a membership names, PEM; none before the first rotation. */
export function namedAuthorities({ authorities }: Pick<Membership, 'authorities'>): readonly string[] {
  if (authorities === undefined) return [];
  const { current, next, former } = authorities;
  return [current, ...(next === undefined ? [] : [next]), ...(former === undefined ? [] : [former.certificate])];
}

/** Whether two certificates in PEM are the same. @throws Error of node:crypto when one is malformed */
export const isSameAuthority = (one: string, other: string): boolean =>
  one === other || fingerprintOf(new X509Certificate(one)) === fingerprintOf(new X509Certificate(other));
