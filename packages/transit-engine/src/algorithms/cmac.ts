import { createCipheriv, type KeyObject } from 'node:crypto';
import { inPieces } from '@transitd/event-loop';

/** Bytes of an AES block and of a full CMAC. */
export const blockBytes = 16;
/** Bytes of the shortest CMAC that verifies. A shorter one could be found by guessing (NIST SP 800-38B appendix A.2). */
export const cmacBytesMin = 4;
const zeroBlock = Buffer.alloc(blockBytes);

/** Names of AES in node:crypto: `chained` is CBC, `single` is ECB. */
export interface BlockCipher {
  readonly chained: 'aes-128-cbc' | 'aes-256-cbc';
  readonly single: 'aes-128-ecb' | 'aes-256-ecb';
}

/** A key prepared for CMACs: the AES key and the two subkeys, which mask the last block. */
export interface CmacKey {
  readonly cipher: BlockCipher;
  readonly key: KeyObject;
  /** Subkey for a full last block. */
  readonly full: Uint8Array;
  /** Subkey for a padded last block. */
  readonly padded: Uint8Array;
}

/**
 * Generates the subkeys (NIST SP 800-38B §6.1, RFC 4493 §2.3). `node:crypto` has AES but no CMAC for a KeyObject;
 * @noble/ciphers has CMAC, but more than ten times slower, with look-up tables and with the key in plain memory.
 */
export function cmacKey(cipher: BlockCipher, key: KeyObject): CmacKey {
  const ecb = createCipheriv(cipher.single, key, null).setAutoPadding(false);
  const full = doubled(ecb.update(zeroBlock));
  return { cipher, key, full, padded: doubled(full) };
}

/** Computes the full CMAC of 16 bytes: CBC from a zero block, with the last block masked (NIST SP 800-38B §6.2, RFC 4493 §2.4). */
export async function cmac({ cipher, key, full, padded }: CmacKey, message: Uint8Array): Promise<Buffer> {
  const chain = createCipheriv(cipher.chained, key, zeroBlock).setAutoPadding(false);
  const lastAt = Math.max(Math.ceil(message.length / blockBytes) - 1, 0) * blockBytes;
  const last = Buffer.alloc(blockBytes);
  last.set(message.subarray(lastAt));
  const lastBytes = message.length - lastAt;
  if (lastBytes < blockBytes) last[lastBytes] = 0x80;
  mask(last, lastBytes < blockBytes ? padded : full);
  const before = inPieces(message.subarray(0, lastAt), (blocks) => chain.update(blocks));
  if (before !== undefined) await before;
  return chain.update(last);
}

/** Multiplies by x in GF(2^128), in constant time. */
function doubled(block: Uint8Array): Buffer {
  const result = Buffer.alloc(blockBytes);
  let carry = 0;
  for (let at = blockBytes - 1; at >= 0; at--) {
    const byte = block[at] ?? 0;
    result[at] = (byte << 1) | carry;
    carry = byte >>> 7;
  }
  result[blockBytes - 1] = (result[blockBytes - 1] ?? 0) ^ (carry * 0x87);
  return result;
}

function mask(block: Uint8Array, by: Uint8Array): void {
  for (let at = 0; at < blockBytes; at++) block[at] = (block[at] ?? 0) ^ (by[at] ?? 0);
}
