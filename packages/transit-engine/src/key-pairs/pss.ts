import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Hash } from '../algorithms/hash-algorithm.ts';

const trailer = 0xbc;
const zeros = Buffer.alloc(8);

/**
 * EMSA-PSS-ENCODE (RFC 8017 §9.1.1) of a digest; node:crypto signs only messages. The mask is MGF1 with the same hash.
 * @param emBits - bits of the modulus minus one, so that the encoded message is smaller than the modulus
 * @returns the encoded message, or undefined if the salt does not fit
 */
export function encodePss(digest: Uint8Array, emBits: number, hash: Hash, saltBytes: number): Buffer | undefined {
  const emBytes = Math.ceil(emBits / 8);
  const dbBytes = emBytes - hash.digestBytes - 1;
  if (dbBytes < saltBytes + 1) return undefined;
  const salt = randomBytes(saltBytes);
  const h = createHash(hash.openssl).update(zeros).update(digest).update(salt).digest();
  const db = Buffer.alloc(dbBytes);
  db[dbBytes - saltBytes - 1] = 1;
  db.set(salt, dbBytes - saltBytes);
  applyMask(db, h, hash);
  db[0] = (db[0] ?? 0) & (0xff >>> (8 * emBytes - emBits));
  return Buffer.concat([db, h, Uint8Array.of(trailer)]);
}

/** EMSA-PSS-VERIFY (RFC 8017 §9.1.2). @param saltBytes - required length; any if undefined */
export function verifyPss(
  digest: Uint8Array,
  encoded: Uint8Array,
  emBits: number,
  hash: Hash,
  saltBytes: number | undefined,
): boolean {
  const emBytes = Math.ceil(emBits / 8);
  const dbBytes = emBytes - hash.digestBytes - 1;
  if (encoded.length !== emBytes || dbBytes < 1 || encoded[emBytes - 1] !== trailer) return false;
  const h = encoded.subarray(dbBytes, emBytes - 1);
  const db = Buffer.from(encoded.subarray(0, dbBytes));
  const unused = 8 * emBytes - emBits;
  if (((db[0] ?? 0) & ~(0xff >>> unused) & 0xff) !== 0) return false;
  applyMask(db, h, hash);
  db[0] = (db[0] ?? 0) & (0xff >>> unused);
  const oneAt = db.findIndex((byte) => byte !== 0);
  if (oneAt === -1 || db[oneAt] !== 1) return false;
  const salt = db.subarray(oneAt + 1);
  if (saltBytes !== undefined && salt.length !== saltBytes) return false;
  return timingSafeEqual(h, createHash(hash.openssl).update(zeros).update(digest).update(salt).digest());
}

/** XORs MGF1 of the seed over the bytes (RFC 8017 appendix B.2.1). */
function applyMask(bytes: Buffer, seed: Uint8Array, { openssl, digestBytes }: Hash): void {
  const counter = Buffer.alloc(4);
  for (let at = 0, block = 0; at < bytes.length; at += digestBytes, block++) {
    counter.writeUInt32BE(block);
    const mask = createHash(openssl).update(seed).update(counter).digest();
    for (let i = 0; i < digestBytes && at + i < bytes.length; i++) bytes[at + i] = (bytes[at + i] ?? 0) ^ (mask[i] ?? 0);
  }
}
