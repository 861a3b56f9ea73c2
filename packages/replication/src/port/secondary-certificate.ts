import { createHash, X509Certificate } from 'node:crypto';
import { type ClusterAuthority, certify, fingerprintOf, keyIn, nameByAny, newKey, requestFor } from '@transitd/cluster';
import { isSecondaryId } from '../registry/registry.ts';

/*
 * Certificates of secondaries. Their names do not have the form of a node's name, and they are for clients only. So no cluster port accepts
 * one as the certificate of a member, even if a membership list named it.
 */

/** A certificate with its key, PEM, and its fingerprint. */
interface KeyedCertificate {
  readonly key: string;
  readonly certificate: string;
  readonly fingerprint: string;
}

/** The primary's cluster, and the secondary's id there. */
interface SecondaryName {
  readonly clusterId: string;
  readonly secondary: string;
}

const certificateMs = 365 * 24 * 3_600_000;
const subjectOf = (secondary: string): string => `CN=secondary ${secondary}`;

/** Creates the key and the certificate for an activation token. */
export async function makeActivationCertificate(
  authority: ClusterAuthority,
  { clusterId, secondary, now, ttlMs }: SecondaryName & { readonly now: Date; readonly ttlMs: number },
): Promise<KeyedCertificate> {
  const { pem: key, keys } = newKey();
  const certificate = await certify(authority, {
    publicKey: keys.publicKey,
    subject: subjectOf(secondary),
    uri: `transitd-activation:${clusterId}/${secondary}`,
    usages: ['clientAuth'],
    ...{ now, lifeMs: ttlMs },
  });
  return { key, certificate, fingerprint: fingerprintOf(new X509Certificate(certificate)) };
}

/**
 * Creates the secondary's key, which never leaves the secondary, and the request to certify it; both in PEM.
 * @param cluster - id of the secondary's Raft cluster
 */
export const makeSecondaryRequest = async (
  secondary: string,
  cluster: string,
): Promise<{ readonly key: string; readonly request: string; readonly cluster: string }> => ({
  ...(await requestFor(subjectOf(secondary))),
  cluster,
});

/**
 * Certifies the key of a secondary for one year. The primary decides by its registry, not by this date.
 * @returns the certificate (PEM), its fingerprint, and the SHA-256 of the key
 * @throws ClusterError `request_refused` unless the request is for an EC P-256 key, is signed with that key, and names this secondary
 */
export async function signSecondary(
  authority: ClusterAuthority,
  { clusterId, secondary, request, now }: SecondaryName & { readonly request: string; readonly now: Date },
): Promise<{ readonly certificate: string; readonly fingerprint: string; readonly keyHash: string }> {
  const certificate = await certify(authority, {
    publicKey: await keyIn(request, subjectOf(secondary)),
    subject: subjectOf(secondary),
    uri: `transitd-secondary:${clusterId}/${secondary}`,
    usages: ['clientAuth'],
    ...{ now, lifeMs: certificateMs },
  });
  const signed = new X509Certificate(certificate);
  const keyHash = createHash('sha256')
    .update(signed.publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
  return { certificate, fingerprint: fingerprintOf(signed), keyHash };
}

/** Returns the secondary that a certificate names; undefined unless one of the authorities signed it for this cluster. */
export function secondaryIn(
  certificate: X509Certificate,
  { clusterId, authorities }: { readonly clusterId: string; readonly authorities: readonly X509Certificate[] },
): string | undefined {
  const isSigned = authorities.some((authority) => certificate.checkIssued(authority) && certificate.verify(authority.publicKey));
  const [, secondary = ''] = /^CN=secondary ([0-9A-Za-z._-]+)$/.exec(certificate.subject) ?? [];
  const named = certificate.subjectAltName === `URI:transitd-secondary:${clusterId}/${secondary}`;
  return isSigned && !certificate.ca && named && isSecondaryId(secondary) ? secondary : undefined;
}

/** Returns why a certificate is not that of a node of this cluster, or undefined if it is. */
export function primaryNodeFault(
  certificate: X509Certificate,
  { clusterId, authorities }: { readonly clusterId: string; readonly authorities: readonly string[] },
): string | undefined {
  const name = nameByAny(
    certificate,
    authorities.map((pem) => new X509Certificate(pem)),
  );
  if (name === undefined) return 'no authority of the primary signed its certificate';
  return name.clusterId === clusterId ? undefined : 'its certificate is for another cluster';
}
