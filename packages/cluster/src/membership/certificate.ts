import { createHash, type X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';

/** Whom a certificate names. */
export interface NodeName {
  readonly clusterId: string;
  readonly nodeId: NodeId;
}

/** SHA-256 of the certificate's DER in lower-case hex, as the member list holds it. */
export const fingerprintOf = ({ raw }: X509Certificate): string => createHash('sha256').update(raw).digest('hex');

/** The one subject alternative name of a node's certificate. */
export const uriOf = ({ clusterId, nodeId }: NodeName): string => `transitd:${clusterId}/${nodeId}`;

/**
 * Whom a certificate names, when it is a node's: issued and signed by `authority`, and with nothing but one common name and one URI,
 * which agree. Its time is not looked at (a listed member whose certificate has run out is let in): the member list decides.
 */
export function nameIn(certificate: X509Certificate, authority: X509Certificate): NodeName | undefined {
  if (certificate.ca || !certificate.checkIssued(authority) || !certificate.verify(authority.publicKey)) return undefined;
  const [, nodeId] = /^CN=([1-9]\d{0,14})$/.exec(certificate.subject) ?? [];
  const [, clusterId] = /^URI:transitd:([0-9a-f-]{1,64})\/\d+$/.exec(certificate.subjectAltName ?? '') ?? [];
  if (nodeId === undefined || clusterId === undefined) return undefined;
  const name = { clusterId, nodeId: Number(nodeId) };
  return certificate.subjectAltName === `URI:${uriOf(name)}` && name.nodeId < 2 ** 48 ? name : undefined;
}

/** {@link nameIn} by whichever of these authorities has signed the certificate. */
export function nameByAny(certificate: X509Certificate, authorities: readonly X509Certificate[]): NodeName | undefined {
  for (const authority of authorities) {
    const name = nameIn(certificate, authority);
    if (name !== undefined) return name;
  }
  return undefined;
}

/** Half of the certificate's life has passed, by this node's clock in milliseconds since 1970: it is time for the next. */
export function renewalDue({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return now >= (validFromDate.getTime() + validToDate.getTime()) / 2;
}
