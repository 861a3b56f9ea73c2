import { createHash } from 'node:crypto';
import { eddsa } from '@noble/curves/abstract/edwards.js';
import { ed25519 } from '@noble/curves/ed25519.js';

/** The label of dom2 (RFC 8032 §2). */
const label = Buffer.from('SigEd25519 no Ed25519 collisions');

/**
 * Ed25519ph (RFC 8032 §5.1) of a digest. The Ed25519ph of @noble/curves hashes the message itself; this variant uses its curve and
 * algorithm without that hash.
 */
export const ed25519ph = eddsa(ed25519.Point, sha512, {
  adjustScalarBytes: clamp,
  domain: (data: Uint8Array, context: Uint8Array, prehashed: boolean) =>
    Uint8Array.from([...label, Number(prehashed), context.length, ...context, ...data]),
  prehash: (digest: Uint8Array) => Uint8Array.from(digest),
  zip215: false,
});

function sha512(message: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(createHash('sha512').update(message).digest());
}

/** RFC 8032 §5.1.5, step 2. */
function clamp(scalar: Uint8Array): Uint8Array<ArrayBuffer> {
  const clamped = Uint8Array.from(scalar);
  clamped[0] = (clamped[0] ?? 0) & 0xf8;
  clamped[31] = ((clamped[31] ?? 0) & 0x7f) | 0x40;
  return clamped;
}
