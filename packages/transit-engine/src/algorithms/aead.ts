import { type CipherGCMTypes, createCipheriv, createDecipheriv, type KeyObject } from 'node:crypto';
import { release } from '@transitd/process';
import { TransitError } from '../values/errors.ts';
import { nonceBytes } from './nonce-pool.ts';

const tagBytes = 16;
const overheadBytes = nonceBytes + tagBytes;
const options = { authTagLength: tagBytes };

/** An AEAD of node:crypto with a 96-bit nonce and a 128-bit tag (RFC 5116, RFC 8439). */
export interface Aead {
  readonly cipher: CipherGCMTypes | 'chacha20-poly1305';
  /** Error text for a ciphertext that was made with another key or was modified. */
  readonly authenticationFailure: string;
}

/** An empty input, such as absent associated data. */
export const noBytes: Uint8Array = new Uint8Array(0);

/**
 * Encrypts to `nonce (12) ‖ ciphertext ‖ tag (16)` (RFC 5116 §5.1, RFC 8439 §2.8).
 * A nonce must never be used twice under one key.
 */
export function seal(
  { cipher: name }: Aead,
  key: KeyObject,
  { plaintext, associatedData, nonce }: { plaintext: Uint8Array; associatedData: Uint8Array; nonce: Uint8Array },
): Buffer {
  if (nonce.length !== nonceBytes) throw new Error(`wrong nonce length: expected ${nonceBytes} bytes, not ${nonce.length}`);
  const payload = Buffer.allocUnsafe(plaintext.length + overheadBytes);
  payload.set(nonce);
  const cipher = createSealer(name, key, nonce);
  if (associatedData.length > 0) cipher.setAAD(associatedData, { plaintextLength: plaintext.length });
  const ciphertext = cipher.update(plaintext);
  payload.set(ciphertext, nonceBytes);
  release(ciphertext);
  cipher.final();
  payload.set(cipher.getAuthTag(), nonceBytes + plaintext.length);
  return payload;
}

/**
 * Decrypts the output of {@link seal}. Returns plaintext only after the tag was verified.
 * @throws TransitError `invalid_ciphertext`
 */
export function open(
  { cipher: name, authenticationFailure }: Aead,
  key: KeyObject,
  { payload, associatedData }: { payload: Uint8Array; associatedData: Uint8Array },
): Buffer {
  if (payload.length < nonceBytes) throw new TransitError('invalid_ciphertext', 'invalid ciphertext length');
  if (payload.length < overheadBytes) throw new TransitError('invalid_ciphertext', authenticationFailure);
  const tagAt = payload.length - tagBytes;
  const decipher = createOpener(name, key, payload.subarray(0, nonceBytes));
  if (associatedData.length > 0) decipher.setAAD(associatedData, { plaintextLength: tagAt - nonceBytes });
  decipher.setAuthTag(payload.subarray(tagAt));
  const plaintext = decipher.update(payload.subarray(nonceBytes, tagAt));
  try {
    decipher.final();
  } catch {
    plaintext.fill(0);
    throw new TransitError('invalid_ciphertext', authenticationFailure);
  }
  return plaintext;
}

// Node's types have one overload for each family of ciphers, so each family needs a call of its own.
const createSealer = (name: Aead['cipher'], key: KeyObject, nonce: Uint8Array) =>
  name === 'chacha20-poly1305' ? createCipheriv(name, key, nonce, options) : createCipheriv(name, key, nonce, options);

const createOpener = (name: Aead['cipher'], key: KeyObject, nonce: Uint8Array) =>
  name === 'chacha20-poly1305' ? createDecipheriv(name, key, nonce, options) : createDecipheriv(name, key, nonce, options);
