import type { CipherGCMTypes } from 'node:crypto';
import { TransitError } from './errors.ts';
import type { KeyPairScheme } from './key-pair.ts';
import { ecdsa } from './key-pairs/ecdsa.ts';
import { ed25519 } from './key-pairs/ed25519.ts';
import { rsa } from './key-pairs/rsa.ts';

/** An AEAD of node:crypto with a 96-bit nonce and a 128-bit tag (RFC 5116, RFC 8439). */
export interface Aead {
  readonly cipher: CipherGCMTypes | 'chacha20-poly1305';
  /** What a ciphertext is answered with that this key did not make or that was changed. */
  readonly authenticationFailure: string;
}

/** AES as node:crypto has it for CMAC: a chain of blocks, or each block alone. */
export interface BlockCipher {
  readonly chained: 'aes-128-cbc' | 'aes-256-cbc';
  readonly single: 'aes-128-ecb' | 'aes-256-ecb';
}

/** What a key of one type is and can do. Whatever differs between types is read from here. */
export interface KeyType {
  readonly name: string;
  readonly supportsEncryption: boolean;
  readonly supportsDecryption: boolean;
  readonly supportsSigning: boolean;
  readonly supportsDerivation: boolean;
  /** Bytes of key material of one version, unless the key has a size of its own; 0 for key pairs, whose form differs. */
  readonly materialBytes: number;
  /** Sizes that a key may have, in bytes, where it may have one of its own. */
  readonly sizes?: { readonly min: number; readonly max: number };
  /** Encrypts with it. */
  readonly aead?: Aead;
  /** Makes CMACs with it. */
  readonly cmac?: BlockCipher;
  /** A version is a pair of keys: it signs with it, and RSA encrypts. */
  readonly keyPair?: KeyPairScheme;
  /** The material is the secret of HMAC operations; every other type has one beside it. */
  readonly materialIsHmacSecret?: true;
}

const macOnly = {
  supportsEncryption: false,
  supportsDecryption: false,
  supportsSigning: false,
  supportsDerivation: false,
} as const;

const symmetric = {
  supportsEncryption: true,
  supportsDecryption: true,
  supportsSigning: false,
  supportsDerivation: true,
} as const;

const signing = { ...macOnly, supportsSigning: true, materialBytes: 0 } as const;
const signingAndEncryption = { ...signing, supportsEncryption: true, supportsDecryption: true } as const;

const gcmFailure = 'cipher: message authentication failed';

const types: readonly KeyType[] = [
  { ...symmetric, name: 'aes128-gcm96', materialBytes: 16, aead: { cipher: 'aes-128-gcm', authenticationFailure: gcmFailure } },
  { ...symmetric, name: 'aes256-gcm96', materialBytes: 32, aead: { cipher: 'aes-256-gcm', authenticationFailure: gcmFailure } },
  {
    ...symmetric,
    name: 'chacha20-poly1305',
    materialBytes: 32,
    aead: { cipher: 'chacha20-poly1305', authenticationFailure: 'chacha20poly1305: message authentication failed' },
  },
  { ...signing, name: 'ed25519', supportsDerivation: true, keyPair: ed25519 },
  { ...signing, name: 'ecdsa-p256', keyPair: ecdsa('P-256', 'ecdsa-p256') },
  { ...signing, name: 'ecdsa-p384', keyPair: ecdsa('P-384', 'ecdsa-p384') },
  { ...signing, name: 'ecdsa-p521', keyPair: ecdsa('P-521', 'ecdsa-p521') },
  { ...signingAndEncryption, name: 'rsa-2048', keyPair: rsa(2048) },
  { ...signingAndEncryption, name: 'rsa-3072', keyPair: rsa(3072) },
  { ...signingAndEncryption, name: 'rsa-4096', keyPair: rsa(4096) },
  { ...macOnly, name: 'hmac', materialBytes: 32, sizes: { min: 32, max: 512 }, materialIsHmacSecret: true },
  { ...macOnly, name: 'aes128-cmac', materialBytes: 16, cmac: { chained: 'aes-128-cbc', single: 'aes-128-ecb' } },
  { ...macOnly, name: 'aes256-cmac', materialBytes: 32, cmac: { chained: 'aes-256-cbc', single: 'aes-256-ecb' } },
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

/** Whether a version of a key of this type can have that much material. */
export function fitsType({ materialBytes, sizes, keyPair }: KeyType, bytes: number): boolean {
  if (keyPair !== undefined) return keyPair.fits(bytes);
  return sizes === undefined ? bytes === materialBytes : bytes >= sizes.min && bytes <= sizes.max;
}

/** Whether material and public half can be those of one version: only key pairs have the second, and may have it alone. */
export function fitsVersion(type: KeyType, { material, publicKey }: { material: Uint8Array; publicKey?: Uint8Array }): boolean {
  if (type.keyPair === undefined) return publicKey === undefined && fitsType(type, material.length);
  return publicKey !== undefined && (material.length === 0 || fitsType(type, material.length));
}
