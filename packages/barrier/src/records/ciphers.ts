import { createCipheriv, createDecipheriv, createSecretKey } from 'node:crypto';

const algorithm = 'aes-256-gcm';
export const tagBytes = 16;
const options = { authTagLength: tagBytes };

/**
 * Creates AES-256-GCM with a 128-bit tag, for encryption. The key becomes a key object first: for a key in a buffer, Node 24 throws and
 * catches two errors, which takes more than twice as long.
 */
export const newCipher = (key: Uint8Array, nonce: Uint8Array) => createCipheriv(algorithm, createSecretKey(key), nonce, options);

/** Creates AES-256-GCM with a 128-bit tag, for decryption. */
export const newDecipher = (key: Uint8Array, nonce: Uint8Array) =>
  createDecipheriv(algorithm, createSecretKey(key), nonce, options);
