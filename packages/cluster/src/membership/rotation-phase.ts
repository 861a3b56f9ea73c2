import { X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';
import { fingerprintOf } from './certificate.ts';
import { type Authorities, certificatesOf, type Member, type Membership } from './membership.ts';

/**
 * How far a rotation of the cluster's authority has come. `announced`: the new one is trusted and signs nothing, until every member holds the
 * configuration that names it. `switched`: the new one signs, and the old one is trusted until no member has a certificate of it.
 */
export type RotationPhase = 'none' | 'announced' | 'switched';

export function phaseOf(authorities: Authorities | undefined): RotationPhase {
  if (authorities?.next !== undefined) return 'announced';
  return authorities?.former === undefined ? 'none' : 'switched';
}

/** Whether a member has what lets the rotation go on, in the phase `announced`. */
export type Holds = (id: NodeId) => boolean;

/** The members for which the rotation waits; nobody where none is under way. */
export function waitedFor({ members, authorities }: Membership, holds: Holds): readonly Member[] {
  const phase = phaseOf(authorities);
  if (phase === 'announced') return members.filter(({ id }) => !holds(id));
  const old = new Set(authorities?.former?.fingerprints);
  return phase === 'none' ? [] : members.filter((member) => certificatesOf(member).some((one) => old.has(one)));
}

/** From now on `next` is trusted beside `current`. The same list while another rotation is under way, or where `current` is not the one that signs. */
export function announced(membership: Membership, current: string, next: string): Membership {
  const { authorities } = membership;
  const isCurrent = authorities === undefined || isSameAuthority(authorities.current, current);
  return phaseOf(authorities) === 'none' && isCurrent ? { ...membership, authorities: { current, next } } : membership;
}

/** The announced authority is trusted no longer: nothing was signed by it. */
export function withdrawn(membership: Membership): Membership {
  const { authorities } = membership;
  return authorities?.next === undefined ? membership : { ...membership, authorities: { current: authorities.current } };
}

/** The next phase of a rotation as soon as nobody is waited for; the same list until then, and where none is under way. */
export function advanced(membership: Membership, holds: Holds): Membership {
  const { authorities, members } = membership;
  if (authorities === undefined || waitedFor(membership, holds).length > 0) return membership;
  const { current, next, former } = authorities;
  if (next !== undefined) {
    const fingerprints = members.flatMap(certificatesOf);
    return { ...membership, authorities: { current: next, former: { certificate: current, fingerprints } } };
  }
  return former === undefined ? membership : { ...membership, authorities: { current } };
}

/** Whether an authority may sign for this list of members. @param certificate - PEM */
export const maySign = ({ authorities }: Membership, certificate: string): boolean =>
  authorities === undefined || isSameAuthority(authorities.current, certificate);

/** The authorities that a list of members names, PEM; none before the first rotation. */
export function namedAuthorities({ authorities }: Pick<Membership, 'authorities'>): readonly string[] {
  if (authorities === undefined) return [];
  const { current, next, former } = authorities;
  return [current, ...(next === undefined ? [] : [next]), ...(former === undefined ? [] : [former.certificate])];
}

/** Two certificates in PEM are the same one. @throws Error of node:crypto when one of them is none */
export const isSameAuthority = (one: string, other: string): boolean =>
  one === other || fingerprintOf(new X509Certificate(one)) === fingerprintOf(new X509Certificate(other));
