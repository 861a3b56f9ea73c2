import { constants, createCipheriv, createPublicKey, type KeyObject, publicEncrypt, randomBytes } from 'node:crypto';

export type Encoding = 'pem' | 'der' | 'pkcs12' | 'raw' | 'base64';
export const encodings: readonly Encoding[] = ['pem', 'der', 'pkcs12', 'raw', 'base64'];

const ephemeralKeyBytes = 32;
/** The alternative initial value of RFC 5649 §3, which OpenSSL takes as the IV. */
const initialValue = Buffer.from('a65959a6', 'hex');

/**
 * Wraps key material for an import, as the API of the transit engine takes it: a new AES-256 key encrypted with RSA-OAEP (SHA-256) under
 * the wrapping key of the mount, followed by the material wrapped under the AES key (RFC 5649).
 * @param material - raw bytes of a symmetric key, PKCS#8 DER of a key pair
 * @param wrappingKey - PEM
 * @returns base64
 */
export function wrapForImport(material: Uint8Array, wrappingKey: string): string {
  const ephemeral = randomBytes(ephemeralKeyBytes);
  try {
    const key = createPublicKey(wrappingKey);
    const outer = publicEncrypt({ key, oaepHash: 'sha256', padding: constants.RSA_PKCS1_OAEP_PADDING }, ephemeral);
    const cipher = createCipheriv('id-aes256-wrap-pad', ephemeral, initialValue);
    return Buffer.concat([outer, cipher.update(material), cipher.final()]).toString('base64');
  } finally {
    ephemeral.fill(0);
  }
}

export const pkcs8Of = (key: KeyObject): Buffer => key.export({ type: 'pkcs8', format: 'der' });
