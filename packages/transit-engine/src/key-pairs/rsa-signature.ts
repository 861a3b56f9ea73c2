import { constants, type KeyObject, privateEncrypt, publicDecrypt, timingSafeEqual } from 'node:crypto';
import { nextTurn } from '@transitd/event-loop';
import { type Hash, noHash, signatureHash } from '../algorithms/hash-algorithm.ts';
import { derTag, encodeDer, encodeOid } from '../formats/der.ts';
import { printableName } from '../formats/printable-name.ts';
import { TransitError } from '../values/errors.ts';
import { digestInfoOids } from './digest-info.ts';
import type { SigningOptions } from './key-pair.ts';
import { type NativeOptions, signNatively, verifyNatively } from './native-signature.ts';
import { encodePss, verifyPss } from './pss.ts';

const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING, RSA_NO_PADDING, RSA_PSS_SALTLEN_AUTO } = constants;

/** Signs with RSASSA-PSS or RSASSA-PKCS1-v1_5 (RFC 8017 §8). @param bits - of the key @throws TransitError `invalid_request` */
export async function signRsa(key: KeyObject, bits: number, input: Uint8Array, options: SigningOptions): Promise<Buffer> {
  const scheme = rsaOptions(bits, input, options);
  if (scheme.padding === 'pkcs1v15') {
    if (!options.prehashed)
      return signNatively(key, input, { hash: scheme.hash.openssl, padding: RSA_PKCS1_PADDING, isSlow: true });
    await nextTurn(); // takes a millisecond or more, and node:crypto has no asynchronous form of it
    return privateEncrypt({ key, padding: RSA_PKCS1_PADDING }, scheme.digestInfo);
  }
  const { hash, saltLength } = scheme;
  if (!options.prehashed) return signNatively(key, input, { ...nativePss(hash, saltLength), isSlow: true });
  await nextTurn();
  const encoded = encodePss(input, bits - 1, hash, saltLength === 'auto' ? saltBytesMax(bits, hash) : saltLength);
  if (encoded === undefined) throw invalidSalt(options.saltLength);
  return privateEncrypt({ key, padding: RSA_NO_PADDING }, encoded);
}

/** @throws TransitError `invalid_request` for invalid options */
export async function verifyRsa(
  key: KeyObject,
  bits: number,
  input: Uint8Array,
  signature: Uint8Array,
  options: SigningOptions,
): Promise<boolean> {
  const scheme = rsaOptions(bits, input, options);
  if (signature.length !== bits / 8) return false;
  if (scheme.padding === 'pkcs1v15') {
    if (!options.prehashed)
      return verifyNatively(key, input, signature, { hash: scheme.hash.openssl, padding: RSA_PKCS1_PADDING });
    const signed = recover(key, RSA_PKCS1_PADDING, signature);
    return signed?.length === scheme.digestInfo.length && timingSafeEqual(signed, scheme.digestInfo);
  }
  const { hash, saltLength } = scheme;
  if (!options.prehashed) return verifyNatively(key, input, signature, nativePss(hash, saltLength));
  const encoded = recover(key, RSA_NO_PADDING, signature);
  return encoded !== undefined && verifyPss(input, encoded, bits - 1, hash, saltLength === 'auto' ? undefined : saltLength);
}

export type RsaSignatureScheme =
  | { readonly padding: 'pss'; readonly hash: Hash; readonly saltLength: number | 'auto' }
  | {
      readonly padding: 'pkcs1v15';
      readonly hash: Hash;
      /** The bytes to pad for a prehashed input: the DigestInfo or, with hash `none`, the input itself. */
      readonly digestInfo: Uint8Array;
    };

/** Checks the options for a key size and applies defaults. @throws TransitError `invalid_request` */
export function rsaOptions(bits: number, input: Uint8Array, options: SigningOptions): RsaSignatureScheme {
  const { signatureAlgorithm: padding, prehashed } = options;
  if (options.signatureContext.length > 0) throw refusal('signature_context is for ed25519 keys');
  if (padding !== 'pss' && padding !== 'pkcs1v15') throw refusal(`unsupported rsa signature algorithm ${printableName(padding)}`);
  const hash = signatureHash(options.hash);
  if (hash === undefined) {
    if (padding !== 'pkcs1v15' || !prehashed || options.hash !== noHash)
      throw refusal('hash_algorithm=none requires prehashed=true');
    if (input.length > bits / 8 - paddingBytesMin) throw refusal('input is too long for the size of the key');
    return { padding, hash: noHashFor(input), digestInfo: input };
  }
  if (prehashed && input.length !== hash.digestBytes) throw refusal('crypto/rsa: input must be hashed with given hash');
  if (padding === 'pkcs1v15') return { padding, hash, digestInfo: prehashed ? digestInfo(options.hash, input) : input };
  const saltLength = options.saltLength === 'hash' ? hash.digestBytes : options.saltLength;
  if (saltLength !== 'auto' && saltLength > saltBytesMax(bits, hash)) throw invalidSalt(options.saltLength);
  return { padding, hash, saltLength };
}

/** RFC 8017 §9.2: at least eight bytes of padding, and three fixed bytes. */
const paddingBytesMin = 11;
const noHashFor = ({ length }: Uint8Array): Hash => ({ openssl: noHash, digestBytes: length });

/** Returns the longest salt that fits. */
const saltBytesMax = (bits: number, { digestBytes }: Hash): number => Math.ceil((bits - 1) / 8) - digestBytes - 2;

/** `auto` selects the longest salt for signing, and accepts any length for verifying. */
const nativePss = ({ openssl: hash }: Hash, saltLength: number | 'auto'): NativeOptions => ({
  hash,
  padding: RSA_PKCS1_PSS_PADDING,
  saltLength: saltLength === 'auto' ? RSA_PSS_SALTLEN_AUTO : saltLength,
});

/** Recovers the padded content of a signature; undefined for wrong padding. */
function recover(key: KeyObject, padding: number, signature: Uint8Array): Buffer | undefined {
  try {
    return publicDecrypt({ key, padding }, signature);
  } catch {
    return undefined;
  }
}

const nothing = encodeDer(0x05);
/** Encodes the DigestInfo, which RSASSA-PKCS1-v1_5 pads. */
const digestInfo = (hash: string, digest: Uint8Array): Buffer =>
  encodeDer(
    derTag.sequence,
    encodeDer(derTag.sequence, encodeOid(digestInfoOids[hash] ?? ''), nothing),
    encodeDer(derTag.octetString, digest),
  );

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
const invalidSalt = (requested: number | string): TransitError =>
  refusal(`requested salt length ${printableName(String(requested))} is invalid`);
