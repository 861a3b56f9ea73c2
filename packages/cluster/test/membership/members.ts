import { X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';
import type { ClusterAuthority } from '../../src/membership/authority.ts';
import type { Member } from '../../src/membership/membership.ts';

/** The fingerprint of the certificate of a member: 64 hexadecimal digits. */
export const certificateOf = (id: NodeId): string => id.toString(16).padStart(2, '0').repeat(32);
const member = (id: NodeId): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: certificateOf(id),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
});

/** Members with these ids, each with a name, addresses and the fingerprint of a certificate. */
export const membersOf = (ids: readonly NodeId[]): readonly Member[] => ids.map(member);

/** The certificates of authorities, as a node trusts them. */
export const trusted = (...authorities: readonly ClusterAuthority[]): X509Certificate[] =>
  authorities.map(({ certificate }) => new X509Certificate(certificate));
