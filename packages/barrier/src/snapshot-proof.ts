import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { keyBytes } from './records/box.ts';

const format = 1;
const saltBytes = 32;
const proofBytes = 32;

/**
 * Returns a proof that its maker holds the root key: `format u8 | salt (32 bytes) | HMAC-SHA256` under a one-time key, the HKDF-SHA256
 * (RFC 5869) of the root key and a fresh salt.
 */
export function proveSnapshot(rootKey: Uint8Array, sums: Uint8Array): Buffer {
  const salt = randomBytes(saltBytes);
  return Buffer.concat([Buffer.of(format), salt, macOf(rootKey, salt, sums)]);
}

/** Returns whether `proof` was made for these checksums with this root key. */
export function isSnapshotProof(rootKey: Uint8Array, sums: Uint8Array, proof: Uint8Array): boolean {
  if (proof.length !== 1 + saltBytes + proofBytes || proof[0] !== format) return false;
  return timingSafeEqual(macOf(rootKey, proof.subarray(1, 1 + saltBytes), sums), proof.subarray(1 + saltBytes));
}

function macOf(rootKey: Uint8Array, salt: Uint8Array, sums: Uint8Array): Buffer {
  const key = Buffer.from(hkdfSync('sha256', rootKey, salt, 'transitd snapshot proof 1', keyBytes));
  const mac = createHmac('sha256', key).update(sums).digest();
  key.fill(0);
  return mac;
}
