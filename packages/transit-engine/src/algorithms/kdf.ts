import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

const hashBytes = 32;
const noSalt = createSecretKey(Buffer.alloc(hashBytes));

/**
 * HKDF-Extract with SHA-256 (RFC 5869 §2.2). Keeping the result with a key version saves half the work of every derivation.
 * `node:crypto` offers HKDF only as one function, which limits `info` to 1,024 bytes; contexts of callers may be longer.
 * @param salt - 32 zero bytes by default, as in the RFC
 */
export function hkdfExtract(inputKeyMaterial: Uint8Array, salt: KeyObject = noSalt): KeyObject {
  const pseudoRandomKey = createHmac('sha256', salt).update(inputKeyMaterial).digest();
  const key = createSecretKey(pseudoRandomKey);
  pseudoRandomKey.fill(0);
  return key;
}

/** HKDF-Expand with SHA-256 (RFC 5869 §2.3). @throws RangeError above 255 × 32 bytes */
export function hkdfExpand(pseudoRandomKey: KeyObject, info: Uint8Array, lengthBytes: number): Buffer {
  if (lengthBytes > 255 * hashBytes) throw new RangeError('HKDF-SHA256 gives at most 8160 bytes');
  const output = Buffer.alloc(lengthBytes);
  for (let at = 0, block = 1; at < lengthBytes; at += hashBytes, block++) {
    const hmac = createHmac('sha256', pseudoRandomKey);
    if (at > 0) hmac.update(output.subarray(at - hashBytes, at));
    const digest = hmac.update(info).update(Uint8Array.of(block)).digest();
    digest.copy(output, at);
    digest.fill(0);
  }
  return output;
}

/**
 * Key derivation in counter mode with HMAC-SHA256 (NIST SP 800-108 §4.1): a 32-bit counter from 0, the context, the output length in
 * bits. Only restored keys use it, in this one layout; new keys use HKDF.
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
