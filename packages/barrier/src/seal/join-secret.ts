import { hkdfSync, randomBytes } from 'node:crypto';
import { closeBox, keyBytes, openBox } from '../box.ts';
import { BarrierError } from '../errors.ts';
import { staticKey } from './root-key-wrapping.ts';
import type { SealConfig } from './seal-config.ts';
import { encodeTerms, type SealTerms } from './seal-record.ts';
import { ShareCollection } from './shares.ts';

/** What a wrapped secret is bound to: the terms of the seal, and all else that the two nodes have said so far. */
export interface JoinBinding {
  readonly terms: SealTerms;
  readonly exchanged: Uint8Array;
}

/** A secret by which two nodes show each other that they hold the key of one seal. */
export interface WrappedJoinSecret {
  readonly terms: SealTerms;
  /** 32 random bytes; the caller wipes them. */
  readonly secret: Buffer;
  /** For the other node: `format u8 | salt (32 bytes) | nonce | ciphertext | tag`. */
  readonly wrapped: Buffer;
}

/** What opens it: this node's configured static key, current or previous, or enough shares of a shamir seal. */
export type SealKeyHolder = Extract<SealConfig, { type: 'static' }> | ShareCollection;

const format = 1;
const saltBytes = 32;
const headerBytes = 1 + saltBytes;

/** Bytes of a wrapped secret: the header, a nonce, the secret, a tag. */
export const wrappedJoinSecretBytes = headerBytes + 12 + keyBytes + 16;

/**
 * A fresh secret under a one-time key, HKDF-SHA256 (RFC 5869) of the seal's key and a fresh salt: the seal's key itself wraps the root key and
 * nothing else, and however often strangers ask for a secret, no key is used twice.
 */
export function wrapJoinSecret(sealKey: Uint8Array, binding: JoinBinding): WrappedJoinSecret {
  const secret = randomBytes(keyBytes);
  const header = Buffer.concat([Buffer.of(format), randomBytes(saltBytes)]);
  const key = oneTimeKey(sealKey, header);
  const wrapped = Buffer.concat([header, closeBox(key, associatedData(header, binding), secret)]);
  key.fill(0);
  return { terms: binding.terms, secret, wrapped };
}

/**
 * The secret, on a node that has no records yet; the caller wipes it.
 * @throws BarrierError `seal_mismatch`: a seal of another type, or a key that is not configured here; `join_secret`: another key, or something was changed on the way; `share_missing`
 */
export async function openJoinSecret(
  holder: SealKeyHolder,
  { terms, exchanged, wrapped }: JoinBinding & { readonly wrapped: Uint8Array },
): Promise<Buffer> {
  requireSealType(holder instanceof ShareCollection ? 'shamir' : 'static', terms);
  const sealKey = await keyOf(holder, terms);
  const secret = open(sealKey, { terms, exchanged }, wrapped);
  sealKey.fill(0);
  if (secret === undefined)
    throw new BarrierError(
      'join_secret',
      'the seal key of this node does not open the secret: it is not the key of that cluster, or what was sent has been changed on the way',
    );
  return secret;
}

async function keyOf(holder: SealKeyHolder, { keyId }: SealTerms): Promise<Buffer> {
  if (!(holder instanceof ShareCollection)) return Buffer.from(staticKey(holder, keyId).key);
  if (!holder.complete) throw new BarrierError('share_missing', 'more shares of the seal key are needed');
  return holder.combine();
}

/** @throws BarrierError `seal_mismatch` when the seal that a node may join by is of another type than its own */
export function requireSealType(configured: SealConfig['type'], { type }: Pick<SealTerms, 'type'>): void {
  if (type !== configured)
    throw new BarrierError('seal_mismatch', `the cluster's seal is of type ${type}, the configuration says ${configured}`);
}

function open(sealKey: Uint8Array, binding: JoinBinding, wrapped: Uint8Array): Buffer | undefined {
  if (wrapped[0] !== format) return undefined;
  const header = wrapped.subarray(0, headerBytes);
  const key = oneTimeKey(sealKey, header);
  const secret = openBox(key, associatedData(header, binding), wrapped.subarray(headerBytes));
  key.fill(0);
  return secret;
}

const oneTimeKey = (sealKey: Uint8Array, header: Uint8Array): Buffer =>
  Buffer.from(hkdfSync('sha256', sealKey, header.subarray(1), 'transitd join secret 1', keyBytes));

/** The header's length is fixed and the terms are one JSON array, which ends where it ends: no two bindings give the same bytes. */
const associatedData = (header: Uint8Array, { terms, exchanged }: JoinBinding): Buffer =>
  Buffer.concat([header, encodeTerms(terms), exchanged]);
