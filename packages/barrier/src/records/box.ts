import { createCipheriv, createDecipheriv, createSecretKey, randomFillSync } from 'node:crypto';

/** Length of every nonce in bytes: 96 bits (NIST SP 800-38D §8.2.2). */
const nonceBytes = 12;
const noncesPerFill = 512;

const pool = new Uint8Array(nonceBytes * noncesPerFill);
let next = pool.length;

/** Returns a random nonce that is used once. Nonces are drawn in bulk, because each draw costs 2 µs. The caller copies it at once. */
function takeNonce(): Uint8Array {
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  next += nonceBytes;
  return pool.subarray(next - nonceBytes, next);
}

const algorithm = 'aes-256-gcm';
const tagBytes = 16;
const options = { authTagLength: tagBytes };

/**
 * Creates AES-256-GCM with a 128-bit tag, for encryption. The key becomes a key object first: for a key in a buffer, Node 24 throws and
 * catches two errors, which takes more than twice as long.
 */
const newCipher = (key: Uint8Array, nonce: Uint8Array) => createCipheriv(algorithm, createSecretKey(key), nonce, options);

/** Creates AES-256-GCM with a 128-bit tag, for decryption. */
const newDecipher = (key: Uint8Array, nonce: Uint8Array) => createDecipheriv(algorithm, createSecretKey(key), nonce, options);

/** Length of every key in this package, in bytes: AES-256. */
export const keyBytes = 32;

const nothing = new Uint8Array(0);

/**
 * Encrypts with AES-256-GCM under a fresh random 96-bit nonce (NIST SP 800-38D §8.2.2): `nonce | ciphertext | tag`.
 * Keys are plain buffers rather than `KeyObject`s, because only a buffer can be wiped when the barrier is sealed.
 * @param head - bytes to put before the box
 */
export function closeBox(key: Uint8Array, associatedData: Uint8Array, plaintext: Uint8Array, head = nothing): Buffer {
  const nonceAt = head.length;
  const ciphertextAt = nonceAt + nonceBytes;
  const tagAt = ciphertextAt + plaintext.length;
  const closed = Buffer.allocUnsafe(tagAt + tagBytes);
  closed.set(head);
  closed.set(takeNonce(), nonceAt);
  const cipher = newCipher(key, closed.subarray(nonceAt, ciphertextAt));
  cipher.setAAD(associatedData);
  closed.set(cipher.update(plaintext), ciphertextAt);
  cipher.final();
  closed.set(cipher.getAuthTag(), tagAt);
  return closed;
}

/** Decrypts a box into a new buffer. Returns undefined if the key, the associated data or any byte of the box is wrong. */
export function openBox(key: Uint8Array, associatedData: Uint8Array, box: Uint8Array): Buffer | undefined {
  if (box.length < nonceBytes + tagBytes) return undefined;
  const decipher = newDecipher(key, box.subarray(0, nonceBytes));
  decipher.setAAD(associatedData);
  decipher.setAuthTag(box.subarray(-tagBytes));
  const plaintext = decipher.update(box.subarray(nonceBytes, -tagBytes));
  try {
    decipher.final();
    return plaintext;
  } catch {
    plaintext.fill(0);
    return undefined;
  }
}
