import { createHash, type X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';

export interface NodeName {
  readonly clusterId: string;
  readonly nodeId: NodeId;
}

/** Returns the SHA-256 of the certificate's DER in lower-case hex, as in the membership list. */
export const fingerprintOf = ({ raw }: X509Certificate): string => createHash('sha256').update(raw).digest('hex');

/** Returns the only subject alternative name of a node's certificate. */
export const uriOf = ({ clusterId, nodeId }: NodeName): string => `transitd:${clusterId}/${nodeId}`;

/**
 * Returns the node that a certificate names. Returns undefined unless `authority` issued and signed the certificate, and it has one common
 * name and one URI that agree, and no other names. Validity dates are ignored: the membership list decides, so a listed member with an
 * expired certificate is admitted.
 */
export function nameIn(certificate: X509Certificate, authority: X509Certificate): NodeName | undefined {
  if (certificate.ca || !certificate.checkIssued(authority) || !certificate.verify(authority.publicKey)) return undefined;
  const [, nodeId] = /^CN=([1-9]\d{0,14})$/.exec(certificate.subject) ?? [];
  const [, clusterId] = /^URI:transitd:([0-9a-f-]{1,64})\/\d+$/.exec(certificate.subjectAltName ?? '') ?? [];
  if (nodeId === undefined || clusterId === undefined) return undefined;
  const name = { clusterId, nodeId: Number(nodeId) };
  return certificate.subjectAltName === `URI:${uriOf(name)}` && name.nodeId < 2 ** 48 ? name : undefined;
}

/** Returns the node that the certificate names, if one of these authorities signed it; see {@link nameIn}. */
export function nameByAny(certificate: X509Certificate, authorities: readonly X509Certificate[]): NodeName | undefined {
  for (const authority of authorities) {
    const name = nameIn(certificate, authority);
    if (name !== undefined) return name;
  }
  return undefined;
}

/** Whether half of the certificate's validity has passed. @param now - ms since 1970, by this node's clock */
export function renewalDue({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return now >= (validFromDate.getTime() + validToDate.getTime()) / 2;
}
