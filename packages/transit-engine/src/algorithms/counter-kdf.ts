import { createHmac, type KeyObject } from 'node:crypto';

const hashBytes = 32;

/**
 * Key derivation in counter mode with HMAC-SHA256 (NIST SP 800-108 §4.1), in the one layout that keys restored from elsewhere need: a
 * 32-bit counter from 0, the context, the output's length in bits. New keys use HKDF.
 */
export function counterKdf(key: KeyObject, context: Uint8Array, lengthBytes: number): Buffer {
  const output = Buffer.alloc(lengthBytes);
  for (let at = 0, counter = 0; at < lengthBytes; at += hashBytes, counter++) {
    createHmac('sha256', key)
      .update(u32(counter))
      .update(context)
      .update(u32(lengthBytes * 8))
      .digest()
      .copy(output, at);
  }
  return output;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
