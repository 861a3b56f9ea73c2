import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { keyBytes } from './records/box.ts';

const format = 1;
const saltBytes = 32;
const proofBytes = 32;

/**
 * Subject of a proof. `snapshot`: the checksums of a snapshot. `forwarding node`, `answering node`: one end of a connection, with a value
 * that only its two ends know.
 */
export type ProofSubject = 'snapshot' | 'forwarding node' | 'answering node';

/**
 * Returns a proof that its maker holds the root key: `format u8 | salt (32 bytes) | HMAC-SHA256` of `bytes` under a one-time key, the
 * HKDF-SHA256 (RFC 5869) of the root key, a fresh salt and the kind of the subject.
 */
export function prove(rootKey: Uint8Array, subject: ProofSubject, bytes: Uint8Array): Buffer {
  const salt = randomBytes(saltBytes);
  return Buffer.concat([Buffer.of(format), salt, macOf(rootKey, { subject, salt, bytes })]);
}

/** Returns whether `proof` was made for this subject with this root key. */
export function isProof(rootKey: Uint8Array, subject: ProofSubject, bytes: Uint8Array, proof: Uint8Array): boolean {
  if (proof.length !== 1 + saltBytes + proofBytes || proof[0] !== format) return false;
  const salt = proof.subarray(1, 1 + saltBytes);
  return timingSafeEqual(macOf(rootKey, { subject, salt, bytes }), proof.subarray(1 + saltBytes));
}

function macOf(
  rootKey: Uint8Array,
  { subject, salt, bytes }: { readonly subject: ProofSubject; readonly salt: Uint8Array; readonly bytes: Uint8Array },
): Buffer {
  const key = Buffer.from(hkdfSync('sha256', rootKey, salt, `transitd ${subject} proof 1`, keyBytes));
  const mac = createHmac('sha256', key).update(bytes).digest();
  key.fill(0);
  return mac;
}
