import './reflect-metadata.ts'; // what follows needs it
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, type webcrypto, X509Certificate } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  X509Certificate as SignedCertificate,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { NodeId } from '@transitd/raft-core';
import type { Store, StoredRecord, Write } from '@transitd/storage-fsm';
import { type NodeName, uriOf } from './certificate.ts';

/** What signs the certificates of a cluster's nodes. The key lies behind the barrier and never leaves an unsealed leader. */
export interface ClusterAuthority {
  /** PEM of PKCS #8, EC P-256. */
  readonly key: string;
  /** PEM. */
  readonly certificate: string;
}

/** A request that is not signed: the message says why. */
export class RequestRefused extends Error {
  override readonly name = 'RequestRefused';
}

export const authorityPath = 'core/cluster-authority';
/** Made for a rotation. It begins with the path of the other, so a restore keeps both. */
export const nextAuthorityPath = `${authorityPath}-next`;
const format = 1;

/** A request in PEM takes well below 1 KiB. */
const requestCharactersMax = 4096;
const lifeMs = 365 * 24 * 3_600_000;
/** Clocks of nodes differ a little; ours do not look at it, other tools do. */
const backdatedMs = 5 * 60_000;
/** RFC 5280 §4.1.2.5: no well-defined end. A cluster outlives every date that could stand here. */
const noEnd = new Date('9999-12-31T23:59:59Z');

const curve = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const signature = { name: 'ECDSA', hash: 'SHA-256' } as const;

/** The authority of a new cluster. */
export async function makeAuthority(clusterId: string, now: Date): Promise<ClusterAuthority> {
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

/** A key of a node's own, which never leaves it, and what asks an authority to certify it (PKCS #10, PEM). */
export async function makeRequest(nodeId: NodeId): Promise<{ readonly key: string; readonly request: string }> {
  const { pem, keys } = newKey();
  const request = await Pkcs10CertificateRequestGenerator.create({ name: `CN=${nodeId}`, keys, signingAlgorithm: signature });
  return { key: pem, request: request.toString('pem') };
}

/**
 * Certifies the key of a request for one year, in PEM. Of the request only the key is taken, and whom it names must be `nodeId`; all
 * else in the certificate is ours.
 * @throws RequestRefused unless the request is one for an EC P-256 key, signed with it, that names this node and nothing else
 */
export async function signRequest(
  authority: ClusterAuthority,
  { request, now, ...node }: NodeName & { readonly request: string; readonly now: Date },
): Promise<string> {
  const publicKey = await keyIn(request, node.nodeId);
  const issuer = new SignedCertificate(authority.certificate);
  const signingKey = createPrivateKey(authority.key).toCryptoKey(curve, false, ['sign']);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: newSerialNumber(),
    subject: `CN=${node.nodeId}`,
    issuer: issuer.subject,
    notBefore: new Date(now.getTime() - backdatedMs),
    notAfter: new Date(now.getTime() + lifeMs),
    signingAlgorithm: signature,
    signingKey,
    publicKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth, ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension([{ type: 'url', value: uriOf(node) }]),
    ],
  });
  return pemOf(certificate);
}

async function keyIn(pem: string, nodeId: NodeId): Promise<webcrypto.CryptoKey> {
  if (pem.length > requestCharactersMax) throw new RequestRefused('the certificate request is too long');
  let key: webcrypto.CryptoKey;
  let subject: string;
  try {
    const request = new Pkcs10CertificateRequest(pem);
    key = await request.publicKey.export(curve, ['verify'], crypto);
    if (!(await request.verify(crypto))) throw new RequestRefused('it is not signed with its own key');
    subject = request.subject;
  } catch (error) {
    if (error instanceof RequestRefused) throw error;
    throw new RequestRefused('the certificate request is not one for an EC P-256 key in PEM, signed with that key');
  }
  if (subject !== `CN=${nodeId}`) throw new RequestRefused('the certificate request names another node');
  return key;
}

/** The record of an authority, to be written through the barrier. */
export function authorityRecord({ key, certificate }: ClusterAuthority, path: string = authorityPath): Write {
  return { path, value: Buffer.from(JSON.stringify({ format, key, certificate })) };
}

/**
 * The cluster's authority, or undefined while it has none.
 * @param path - of its record; the one made for a rotation lies at another path until it signs
 * @throws Error for an unknown format; StoreError
 */
export async function readAuthority(
  store: Pick<Store, 'get'>,
  path: string = authorityPath,
): Promise<ClusterAuthority | undefined> {
  const record = await store.get(path);
  return record === undefined ? undefined : authorityIn(record, path);
}

function authorityIn({ value }: StoredRecord, path: string): ClusterAuthority {
  try {
    const fields: unknown = JSON.parse(Buffer.from(value).toString('utf8'));
    if (typeof fields === 'object' && fields !== null && 'format' in fields && fields.format === format) {
      const { key, certificate } = fields as Partial<ClusterAuthority>;
      // The text of errors of these two could repeat what they were given: it is not passed on.
      if (typeof key === 'string' && typeof certificate === 'string' && isPair({ key, certificate })) return { key, certificate };
    }
  } catch {
    // said below
  } finally {
    value.fill(0);
  }
  throw new Error(`the record ${path} has an unknown format`);
}

/** Whether a private key in PEM is the one of a certificate in PEM. @throws Error of node:crypto when one of them is neither */
export const isPair = ({ key, certificate }: { readonly key: string; readonly certificate: string }): boolean =>
  new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));

function newKey(): { readonly pem: string; readonly keys: webcrypto.CryptoKeyPair } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const cryptoKey = (key: KeyObject, usage: 'sign' | 'verify') => key.toCryptoKey(curve, true, [usage]);
  return {
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    keys: { privateKey: cryptoKey(privateKey, 'sign'), publicKey: cryptoKey(publicKey, 'verify') },
  };
}

/** 126 random bits behind a 1, so that it is positive and never shortened (RFC 5280 §4.1.2.2). */
function newSerialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

const pemOf = (certificate: SignedCertificate): string => `${certificate.toString('pem')}\n`;
