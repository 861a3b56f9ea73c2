import type { CipherGCMTypes } from 'node:crypto';
import { TransitError } from './errors.ts';

/** An AEAD of node:crypto with a 96-bit nonce and a 128-bit tag (RFC 5116, RFC 8439). */
export type AeadCipher = CipherGCMTypes | 'chacha20-poly1305';

/** What a key of one type is and can do. Whatever differs between types is read from here. */
export interface KeyType {
  readonly name: string;
  readonly supportsEncryption: boolean;
  readonly supportsDecryption: boolean;
  readonly supportsSigning: boolean;
  readonly supportsDerivation: boolean;
  /** Bytes of key material of one version. */
  readonly materialBytes: number;
  readonly cipher: AeadCipher;
  /** What a ciphertext is answered with that this key did not make or that was changed. */
  readonly authenticationFailure: string;
}

const aead = {
  supportsEncryption: true,
  supportsDecryption: true,
  supportsSigning: false,
  supportsDerivation: true,
  authenticationFailure: 'cipher: message authentication failed',
} as const;

const types: readonly KeyType[] = [
  { ...aead, name: 'aes128-gcm96', materialBytes: 16, cipher: 'aes-128-gcm' },
  { ...aead, name: 'aes256-gcm96', materialBytes: 32, cipher: 'aes-256-gcm' },
  {
    ...aead,
    name: 'chacha20-poly1305',
    materialBytes: 32,
    cipher: 'chacha20-poly1305',
    authenticationFailure: 'chacha20poly1305: message authentication failed',
  },
];

const byName = new Map(types.map((type) => [type.name, type]));

/** The type of a key for which none was asked. */
export const defaultKeyType = 'aes256-gcm96';

/** @throws TransitError `invalid_request` for a name without a row; case counts */
export function keyType(name: string): KeyType {
  const type = byName.get(name);
  if (type === undefined) throw new TransitError('invalid_request', `unknown key type ${name}`);
  return type;
}

/** Whether a stored name can be read by this program. */
export const isKeyType = (name: string): boolean => byName.has(name);
