import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto';
import { TransitError } from '../values/errors.ts';

const cipher = 'id-aes256-wrap-pad';
/** The alternative initial value of RFC 5649 §3. */
const initialValue = Buffer.from('a65959a6', 'hex');
/** Length of the shortest wrapped key: one block for the initial value and the length, one semiblock of content. */
const wrappedBytesMin = 16;

/** AES-256 key wrap with padding (RFC 5649 §4.1, NIST SP 800-38F §6.3). @param content - must not be empty */
export function wrapKey(wrapping: KeyObject, content: Uint8Array): Buffer {
  const wrap = createCipheriv(cipher, wrapping, initialValue);
  return Buffer.concat([wrap.update(content), wrap.final()]);
}

/**
 * Unwraps the output of {@link wrapKey} (RFC 5649 §4.2).
 * @throws TransitError `invalid_request`, with the same text for every cause
 */
export function unwrapKey(wrapping: KeyObject, wrapped: Uint8Array): Buffer {
  if (wrapped.length >= wrappedBytesMin && wrapped.length % 8 === 0) {
    try {
      const unwrap = createDecipheriv(cipher, wrapping, initialValue);
      const content = unwrap.update(wrapped);
      unwrap.final();
      if (content.length > 0) return content;
    } catch {
      // Every cause gets the same error below, so that it reveals nothing.
    }
  }
  throw new TransitError('invalid_request', 'kwp: the key material could not be unwrapped');
}

/** Imports 32 bytes as a wrapping key, and wipes the bytes. */
export function takeWrappingKey(bytes: Uint8Array): KeyObject {
  const key = createSecretKey(bytes);
  bytes.fill(0);
  return key;
}
