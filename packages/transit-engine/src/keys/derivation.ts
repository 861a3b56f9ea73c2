import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { counterKdf, hkdfExpand } from '../algorithms/kdf.ts';
import { nonceBytes } from '../algorithms/nonce-pool.ts';
import type { KeyPairBytes } from '../key-pairs/key-pair.ts';
import type { Kdf } from './key-record.ts';
import type { KeyType } from './key-type.ts';

const nonceKeyBytes = 32;

/** Output length of the counter mode. A shorter key is a prefix of this output. */
const counterBytes = 32;

/** Seed length of a derived key pair. */
const seedBytes = 32;

/**
 * Derives bytes for a context. HKDF-SHA256 of the version's material uses no salt and the context as info.
 * @param baseKey - as cached with the version: HKDF's pseudo-random key or, for the counter mode, the material
 * @returns bytes that the caller wipes
 */
function deriveBytes(baseKey: KeyObject, context: Uint8Array, bytes: number, kdf: Kdf): Buffer {
  if (kdf === 'hkdf_sha256') return hkdfExpand(baseKey, context, bytes);
  const output = counterKdf(baseKey, context, counterBytes);
  const derived = Buffer.from(output.subarray(0, bytes));
  output.fill(0);
  return derived;
}

/** Derives the key of a context. @param baseKey - as cached with the version */
export const deriveKey = (baseKey: KeyObject, context: Uint8Array, keyBytes: number, kdf: Kdf = 'hkdf_sha256'): KeyObject =>
  takeKey(deriveBytes(baseKey, context, keyBytes, kdf));

/** Derives the key pair of a context. The caller wipes it. @param baseKey - as cached with the version */
export function derivePair({ keyPair }: KeyType, baseKey: KeyObject, context: Uint8Array, kdf: Kdf): KeyPairBytes {
  if (keyPair?.fromSeed === undefined) throw new Error('this key type does not support derived key pairs');
  const seed = deriveBytes(baseKey, context, seedBytes, kdf);
  try {
    return keyPair.fromSeed(seed);
  } finally {
    seed.fill(0);
  }
}

/** Nonce of convergent encryption, version 2: HMAC-SHA256 of the plaintext under the context. Only restored keys use it. */
export const contextNonce = (context: Uint8Array, plaintext: Uint8Array): Uint8Array =>
  createHmac('sha256', context).update(plaintext).digest().subarray(0, nonceBytes);

/** Key and nonce of one convergent encryption. */
export interface Convergent {
  readonly key: KeyObject;
  readonly nonce: Uint8Array;
}

/**
 * Derives the key and nonce of convergent encryption, version 3. The HKDF output is the key, nonce key 1 (32 bytes) and nonce key 2 (32
 * bytes). The nonce is the first 12 bytes of an HMAC-SHA256. Without associated data, the HMAC covers the plaintext, under nonce key 1.
 * With associated data, it covers the length of the associated data (u64 big-endian), the associated data and the plaintext, under nonce
 * key 2. So a nonce repeats only for equal inputs, which give an equal ciphertext (the principle of RFC 5297). Two different tags made with
 * one nonce would reveal the authentication key.
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
