import { X509Certificate } from 'node:crypto';

/** The purposes `clientAuth` and any purpose (RFC 5280 §4.2.1.12). */
const clientPurposes = ['1.3.6.1.5.5.7.3.2', '2.5.29.37.0'];

/** Returns the certificates of a PEM text; undefined if it has anything else, or a certificate that cannot be read. */
export function certificatesIn(pem: string): readonly X509Certificate[] | undefined {
  const blocks = pem.match(/-----BEGIN [^-]*-----[^-]*-----END [^-]*-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

/** Returns whether a certificate is one of an authority, or one that a client may use. */
export const isForClients = ({ ca, keyUsage }: X509Certificate): boolean =>
  ca || keyUsage === undefined || keyUsage.some((purpose) => clientPurposes.includes(purpose));
