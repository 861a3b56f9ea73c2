import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { counterKdf, hkdfExpand } from '../algorithms/kdf.ts';
import { nonceBytes } from '../algorithms/nonce-pool.ts';
import type { KeyPairBytes } from '../key-pairs/key-pair.ts';
import type { Kdf } from './key-record.ts';
import type { KeyType } from './key-type.ts';

const nonceKeyBytes = 32;

/** Bytes that the counter mode always derives; a shorter key is their beginning. */
const counterBytes = 32;

/** Of a derived key pair. */
const seedBytes = 32;

/**
 * What belongs to one context: HKDF-SHA256 of the version's material, no salt, the context as info.
 * @param ready - what {@link KeyCache} keeps of the version: HKDF's pseudo-random key or, for the counter mode, the material
 * @returns bytes that their user wipes
 */
function deriveBytes(ready: KeyObject, context: Uint8Array, bytes: number, kdf: Kdf): Buffer {
  if (kdf === 'hkdf_sha256') return hkdfExpand(ready, context, bytes);
  const output = counterKdf(ready, context, counterBytes);
  const derived = Buffer.from(output.subarray(0, bytes));
  output.fill(0);
  return derived;
}

/** The key that belongs to one context. @param ready - as {@link KeyCache} keeps it */
export const deriveKey = (ready: KeyObject, context: Uint8Array, keyBytes: number, kdf: Kdf = 'hkdf_sha256'): KeyObject =>
  takeKey(deriveBytes(ready, context, keyBytes, kdf));

/** The key pair that belongs to one context, whose user wipes it. @param ready - as {@link KeyCache} keeps it */
export function derivePair({ keyPair }: KeyType, ready: KeyObject, context: Uint8Array, kdf: Kdf): KeyPairBytes {
  if (keyPair?.fromSeed === undefined) throw new Error('a key pair was to be derived on a type that does not derive');
  const seed = deriveBytes(ready, context, seedBytes, kdf);
  try {
    return keyPair.fromSeed(seed);
  } finally {
    seed.fill(0);
  }
}

/** The nonce of convergent encryption, version 2: HMAC-SHA256 of the plaintext under the context itself. Only restored keys have it. */
export const contextNonce = (context: Uint8Array, plaintext: Uint8Array): Uint8Array =>
  createHmac('sha256', context).update(plaintext).digest().subarray(0, nonceBytes);

/** Key and nonce of one convergent encryption. */
export interface Convergent {
  readonly key: KeyObject;
  readonly nonce: Uint8Array;
}

/**
 * Convergent encryption, version 3: the HKDF output is longer, and the nonce is the first 12 bytes of an HMAC-SHA256 under what
 * follows the key. Without associated data: of the plaintext, under the first 32 bytes. With it: of its length (u64
 * big-endian), itself and the plaintext, under the 32 bytes behind those. So a nonce comes again only for equal inputs,
 * which give an equal ciphertext (the principle of RFC 5297): one nonce under two tags would give the authentication key away.
 */
export function deriveConvergent(
  pseudoRandomKey: KeyObject,
  { context, associatedData, plaintext }: Record<'context' | 'associatedData' | 'plaintext', Uint8Array>,
  keyBytes: number,
): Convergent {
  const bound = associatedData.length > 0;
  const nonceKeyAt = bound ? keyBytes + nonceKeyBytes : keyBytes;
  const output = hkdfExpand(pseudoRandomKey, context, nonceKeyAt + nonceKeyBytes);
  const hmac = createHmac('sha256', takeKey(output.subarray(nonceKeyAt)));
  if (bound) hmac.update(lengthOf(associatedData)).update(associatedData);
  const nonce = hmac.update(plaintext).digest().subarray(0, nonceBytes);
  const key = takeKey(output.subarray(0, keyBytes));
  output.fill(0);
  return { key, nonce };
}

/** Imports the bytes and wipes them. */
function takeKey(bytes: Buffer): KeyObject {
  const key = createSecretKey(bytes);
  bytes.fill(0);
  return key;
}

function lengthOf(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(bytes.length));
  return length;
}
