import { randomFillSync } from 'node:crypto';

/** Length of every nonce in bytes: 96 bits (NIST SP 800-38D §8.2.2). */
export const nonceBytes = 12;
const noncesPerFill = 512;

const pool = new Uint8Array(nonceBytes * noncesPerFill);
let next = pool.length;

/** Returns a random nonce that is used once. Nonces are drawn in bulk, because each draw costs 2 µs. The caller copies it at once. */
export function takeNonce(): Uint8Array {
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  next += nonceBytes;
  return pool.subarray(next - nonceBytes, next);
}
