import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, type webcrypto, X509Certificate } from 'node:crypto';
import type { NodeId } from '@transitd/raft-core';
import { JsonRecord, type Store, StoreError, type Write } from '@transitd/storage-fsm';
import { z } from 'zod';
import { ClusterError } from '../refusals/cluster-error.ts';
import { type NodeName, uriOf } from './certificate.ts';
import { loadX509 } from './load-x509.ts';

/** The certificate authority of a cluster's nodes. The key is encrypted by the barrier and never leaves an unsealed leader. */
export interface ClusterAuthority {
  /** PEM of PKCS #8, EC P-256. */
  readonly key: string;
  /** PEM. */
  readonly certificate: string;
}

export const authorityPath = 'core/cluster-authority';
/** Path of the record of an announced authority. The path begins with `authorityPath`, so that a restore keeps both records. */
export const nextAuthorityPath = `${authorityPath}-next`;
const pair = z.object({ key: z.string(), certificate: z.string() }).refine(isPair);
const recordAt = (path: string): JsonRecord<ClusterAuthority> => new JsonRecord(path, pair);

/** A request in PEM is well below 1 KiB. */
const requestCharactersMax = 4096;
const lifeMs = 365 * 24 * 3_600_000;
/** Allows for clock differences. Our nodes ignore the date; other tools check it. */
const backdatedMs = 5 * 60_000;
/** RFC 5280 §4.1.2.5: no well-defined end. A cluster may outlive any date. */
const noEnd = new Date('9999-12-31T23:59:59Z');

const curve = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const signature = { name: 'ECDSA', hash: 'SHA-256' } as const;

/** Makes the authority of a cluster, self-signed. */
export async function makeAuthority(clusterId: string, now: Date): Promise<ClusterAuthority> {
  const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, X509CertificateGenerator } = await loadX509();
  const { pem, keys } = newKey();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerialNumber(),
    name: `CN=transitd ${clusterId}`,
    notBefore: new Date(now.getTime() - backdatedMs),
    notAfter: noEnd,
    signingAlgorithm: signature,
    keys,
    extensions: [new BasicConstraintsExtension(true, 0, true), new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true)],
  });
  return { key: pem, certificate: pemOf(certificate) };
}

/** Makes a node's key, which never leaves the node, and the request to certify it (PKCS #10, PEM). */
export const makeRequest = (nodeId: NodeId): Promise<{ readonly key: string; readonly request: string }> =>
  requestFor(`CN=${nodeId}`);

/** Makes a key and the request to certify it for a subject, both in PEM. */
export async function requestFor(subject: string): Promise<{ readonly key: string; readonly request: string }> {
  const { Pkcs10CertificateRequestGenerator } = await loadX509();
  const { pem, keys } = newKey();
  const request = await Pkcs10CertificateRequestGenerator.create({ name: subject, keys, signingAlgorithm: signature });
  return { key: pem, request: request.toString('pem') };
}

/**
 * Certifies the key of a request for one year; returns the certificate in PEM. Only the key is taken from the request, and its subject must
 * be `nodeId`; this function sets everything else.
 * @throws ClusterError `request_refused` unless the request is for an EC P-256 key, is signed with that key, and names exactly this node
 */
export async function signRequest(
  authority: ClusterAuthority,
  { request, now, ...node }: NodeName & { readonly request: string; readonly now: Date },
): Promise<string> {
  const subject = `CN=${node.nodeId}`;
  const publicKey = await keyIn(request, subject);
  return certify(authority, { publicKey, subject, uri: uriOf(node), usages: ['clientAuth', 'serverAuth'], now, lifeMs });
}

/** The content of a certificate that an authority signs. */
export interface Certified {
  readonly publicKey: webcrypto.CryptoKey;
  readonly subject: string;
  /** The only subject alternative name. */
  readonly uri: string;
  readonly usages: readonly ('clientAuth' | 'serverAuth')[];
  readonly now: Date;
  readonly lifeMs: number;
}

/** Signs a certificate that is no authority; returns it in PEM. */
export async function certify(
  authority: ClusterAuthority,
  { publicKey, subject, uri, usages, now, lifeMs: validMs }: Certified,
): Promise<string> {
  const x509 = await loadX509();
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = createPrivateKey(authority.key).toCryptoKey(curve, false, ['sign']);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: newSerialNumber(),
    subject,
    issuer: issuer.subject,
    notBefore: new Date(now.getTime() - backdatedMs),
    notAfter: new Date(now.getTime() + validMs),
    signingAlgorithm: signature,
    signingKey,
    publicKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(usages.map((usage) => x509.ExtendedKeyUsage[usage])),
      new x509.SubjectAlternativeNameExtension([{ type: 'url', value: uri }]),
    ],
  });
  return pemOf(certificate);
}

/**
 * Returns the key that a request (PKCS #10, PEM) asks to certify.
 * @throws ClusterError `request_refused` unless it is an EC P-256 key that signed the request, and the request has exactly this subject
 */
export async function keyIn(pem: string, subject: string): Promise<webcrypto.CryptoKey> {
  if (pem.length > requestCharactersMax) throw new ClusterError('request_refused', 'the certificate request is too long');
  const { Pkcs10CertificateRequest } = await loadX509();
  let key: webcrypto.CryptoKey;
  let requested: string;
  try {
    const request = new Pkcs10CertificateRequest(pem);
    key = await request.publicKey.export(curve, ['verify'], crypto);
    if (!(await request.verify(crypto)))
      throw new ClusterError('request_refused', 'the certificate request is not signed with its own key');
    requested = request.subject;
  } catch (error) {
    if (error instanceof ClusterError) throw error;
    throw new ClusterError(
      'request_refused',
      'the certificate request is not one for an EC P-256 key in PEM, signed with that key',
    );
  }
  if (requested !== subject) throw new ClusterError('request_refused', 'the certificate request names another node');
  return key;
}

/** Returns the record of an authority; write it through the barrier. */
export function authorityRecord({ key, certificate }: ClusterAuthority, path: string = authorityPath): Write {
  return recordAt(path).written({ key, certificate });
}

/**
 * Returns the cluster's authority; undefined while it has none.
 * @param path - path of the record; an announced authority has another path until it signs
 * @throws Error for an unknown format; StoreError
 */
export async function readAuthority(
  store: Pick<Store, 'get'>,
  path: string = authorityPath,
): Promise<ClusterAuthority | undefined> {
  return (await recordAt(path).read(store))?.value;
}

/** Returns the same, or `unreadable` for a record that a restore under another root key has left. @throws StoreError */
export async function readAuthorityIfReadable(
  store: Pick<Store, 'get'>,
  path?: string,
): Promise<ClusterAuthority | 'unreadable' | undefined> {
  try {
    return await readAuthority(store, path);
  } catch (error) {
    if (error instanceof StoreError) throw error;
    return 'unreadable';
  }
}

/** Whether a private key (PEM) belongs to a certificate (PEM); not if one of them is malformed. */
export function isPair({ key, certificate }: { readonly key: string; readonly certificate: string }): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false; // the error is dropped: its text could contain the key
  }
}

/** Makes an EC P-256 key, as PKCS #8 in PEM and as a pair for certificates. */
export function newKey(): { readonly pem: string; readonly keys: webcrypto.CryptoKeyPair } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cryptoKey = (key: KeyObject, usage: 'sign' | 'verify') => key.toCryptoKey(curve, true, [usage]);
  return {
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    keys: { privateKey: cryptoKey(privateKey, 'sign'), publicKey: cryptoKey(publicKey, 'verify') },
  };
}

/** Returns 126 random bits after a leading 01: positive, and always 16 bytes (RFC 5280 §4.1.2.2). */
function newSerialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

const pemOf = (certificate: { toString(format: 'pem'): string }): string => `${certificate.toString('pem')}\n`;
