import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { NonceSource } from './aead.ts';
import { hkdfExpand } from './hkdf.ts';
import { nonceBytes } from './nonce-pool.ts';

const nonceKeyBytes = 32;

/** The key that belongs to one context: HKDF-SHA256 of the version's material, no salt, the context as info. */
export function deriveKey(pseudoRandomKey: KeyObject, context: Uint8Array, keyBytes: number): KeyObject {
  return takeKey(hkdfExpand(pseudoRandomKey, context, keyBytes));
}

/** Key and nonce of one convergent encryption. */
export interface Convergent {
  readonly key: KeyObject;
  readonly nonces: NonceSource;
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
  return { key, nonces: { take: (target) => target.set(nonce) } };
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
