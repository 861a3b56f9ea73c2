import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** Length of every key in this package, in bytes: AES-256. */
export const keyBytes = 32;

const nonceBytes = 12;
const tagBytes = 16;

/**
 * Encrypts with AES-256-GCM under a fresh random 96-bit nonce (NIST SP 800-38D §8.2.2): `nonce | ciphertext | tag`.
 * Keys are plain buffers rather than `KeyObject`s, because only a buffer can be wiped when the barrier is sealed.
 */
export function closeBox(key: Uint8Array, associatedData: Uint8Array, plaintext: Uint8Array): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(associatedData);
  const ciphertext = cipher.update(plaintext);
  cipher.final();
  return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]);
}

/** Decrypts a box into a new buffer. Returns undefined if the key, the associated data or any byte of the box is wrong. */
export function openBox(key: Uint8Array, associatedData: Uint8Array, box: Uint8Array): Buffer | undefined {
  if (box.length < nonceBytes + tagBytes) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', key, box.subarray(0, nonceBytes), { authTagLength: tagBytes });
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
