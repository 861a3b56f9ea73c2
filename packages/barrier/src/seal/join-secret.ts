import { hkdfSync, randomBytes } from 'node:crypto';
import { closeBox, keyBytes, openBox } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';
import { sealKeyOf } from './root-key-wrapping.ts';
import { type SealConfig, type SealType, sealOf, sealTypesOf } from './seal-config.ts';
import { encodeTerms, type SealTerms } from './seal-record.ts';
import { ShareCollection } from './shares.ts';

/** The context that a wrapped secret is bound to: the terms of the seal and all other messages that the two nodes have exchanged. */
export interface JoinBinding {
  readonly terms: SealTerms;
  readonly exchanged: Uint8Array;
}

/** A secret with which two nodes prove to each other that they hold the key of the same seal. */
export interface WrappedJoinSecret {
  readonly terms: SealTerms;
  /** 32 random bytes; the caller wipes them. */
  readonly secret: Buffer;
  /** The message to the other node: `format u8 | salt (32 bytes) | nonce | ciphertext | tag`. */
  readonly wrapped: Buffer;
}

/** The key that opens a secret: this node's seal, if it unseals without an operator, or enough shares of a Shamir seal. */
export type SealKeyHolder = SealConfig | ShareCollection;

const format = 1;
const saltBytes = 32;
const headerBytes = 1 + saltBytes;

/** Length of a wrapped secret: the header, a nonce, the secret and a tag. */
export const wrappedJoinSecretBytes = headerBytes + 12 + keyBytes + 16;

/**
 * Returns a fresh secret, wrapped under a one-time key: the HKDF-SHA256 (RFC 5869) of the seal's key and a fresh salt. So the seal's key
 * wraps only the root key, and no key is used twice, however often unauthenticated callers request a secret.
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
 * Opens a wrapped secret on a node that has no records yet; the caller wipes it.
 * @throws BarrierError `seal_mismatch`: the seal has another type, or its key is not configured here; `join_secret`: the key is wrong, or
 * the message was changed in transit; `share_missing`; ProviderError
 */
export async function openJoinSecret(
  holder: SealKeyHolder,
  { terms, exchanged, wrapped }: JoinBinding & { readonly wrapped: Uint8Array },
): Promise<Buffer> {
  requireSealType(holder instanceof ShareCollection ? ['shamir'] : sealTypesOf(holder), terms);
  const sealKey = await keyOf(holder, terms);
  const secret = open(sealKey, { terms, exchanged }, wrapped);
  sealKey.fill(0);
  if (secret === undefined)
    throw new BarrierError(
      'join_secret',
      "this node's seal key does not open the secret: it is not the cluster's seal key, or the message was changed in transit",
    );
  return secret;
}

async function keyOf(holder: SealKeyHolder, terms: SealTerms): Promise<Buffer> {
  const isShares = holder instanceof ShareCollection;
  if (!isShares && terms.type !== 'shamir') return sealKeyOf(sealOf(holder, terms), terms);
  if (!isShares || !holder.complete) throw new BarrierError('share_missing', 'more shares of the seal key are needed');
  return holder.combine();
}

/** Checks that the cluster's seal has a configured type. @throws BarrierError `seal_mismatch` */
export function requireSealType(configured: readonly SealType[], { type }: Pick<SealTerms, 'type'>): void {
  if (!configured.includes(type))
    throw new BarrierError(
      'seal_mismatch',
      `the cluster's seal is of type ${type}, the configuration says ${configured.join(' or ')}`,
    );
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

/** The header has a fixed length and the terms are one self-delimiting JSON array, so different bindings give different bytes. */
const associatedData = (header: Uint8Array, { terms, exchanged }: JoinBinding): Buffer =>
  Buffer.concat([header, encodeTerms(terms), exchanged]);
