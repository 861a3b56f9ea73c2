import { X509Certificate } from 'node:crypto';

/**
 * Labels of certificates in PEM. A `TRUSTED CERTIFICATE` of OpenSSL is none of them: it says itself for which purposes it is trusted, which
 * OpenSSL would obey and nothing else here would know.
 */
const labels = ['CERTIFICATE', 'X509 CERTIFICATE'];

/**
 * Returns the certificates of a PEM text, at least one. Text around them is ignored, as OpenSSL does.
 * @throws Error that says what is wrong, for example a block that is something else
 */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = Array.from(pem.matchAll(/-----BEGIN ([^-]*)-----(?:[^-]*-----END \1-----)?/g));
  const other = blocks.find(([, label = '']) => !labels.includes(label))?.[1];
  if (other !== undefined) throw new Error(`a block "${other.slice(0, 32)}" is not accepted, only certificates`);
  if (blocks.length === 0) throw new Error('it has no certificate');
  return blocks.map(([block]) => new X509Certificate(block));
}
