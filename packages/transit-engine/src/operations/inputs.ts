import { noBytes } from '../algorithms/aead.ts';
import { defaultHash, type Hash, signatureHash } from '../algorithms/hash-algorithm.ts';
import { nonceBytes } from '../algorithms/nonce-pool.ts';
import { decodeBase64 } from '../formats/base64.ts';
import { printableName } from '../formats/printable-name.ts';
import type { RsaPadding } from '../key-pairs/key-pair.ts';
import type { LoadedKey } from '../keys/key-cache.ts';
import { convergenceOf } from '../keys/version-record.ts';
import { TransitError } from '../values/errors.ts';

/** Decodes the context, which selects a derived key. On keys that are not derived, the result is empty, but the context must be base64. */
export function contextOf({ record }: LoadedKey, context = ''): Uint8Array {
  const bytes = context === '' ? noBytes : decodeBase64(context);
  if (!record.derived) return noBytes;
  if (bytes.length > 0) return bytes;
  throw new TransitError(
    'invalid_request',
    "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request " +
      'information must be included in order to perform operations with the key',
  );
}

/** Decodes the context of a signature, for which the error text for invalid base64 differs. */
export function signingContextOf(key: LoadedKey, context = ''): Uint8Array {
  checkText('context', context);
  return contextOf(key, context);
}

/** Checks a member for base64. @throws TransitError `invalid_request` */
export function checkText(name: string, text: string): void {
  if (text === '') return;
  try {
    decodeBase64(text);
  } catch (error) {
    throw new TransitError('invalid_request', `failed to base64-decode ${name}`, { cause: error });
  }
}

/**
 * Decodes the input to hash, authenticate, sign or verify, which may be empty.
 * @param missing - the error text when the input is absent
 */
export function bytesOf(input: string | undefined, missing = 'missing input'): Buffer {
  if (input === undefined) throw new TransitError('invalid_request', missing);
  try {
    return decodeBase64(input);
  } catch (error) {
    if (!(error instanceof TransitError)) throw error;
    throw new TransitError(error.code, `unable to decode input as base64: ${error.message}`, { cause: error });
  }
}

/** Decodes associated data, which only AEADs and managed keys support. */
export function associatedDataOf({ type }: LoadedKey, associatedData: string | undefined, index: number): Uint8Array {
  if (associatedData === undefined || associatedData === '') return noBytes;
  if (type.aead === undefined && !type.managed) {
    const refusal = `'[${index}].associated_data' provided for non-AEAD cipher suite ${type.name}`;
    throw new TransitError('invalid_request', refusal);
  }
  try {
    return decodeBase64(associatedData);
  } catch (error) {
    if (!(error instanceof TransitError)) throw error;
    throw new TransitError(error.code, `unable to get associated_data/additional_data from factory[${index}]: ${error.message}`, {
      cause: error,
    });
  }
}

/** @throws TransitError `invalid_request` for a type that does not support it */
export function checkEncrypts({ type }: LoadedKey, purpose: 'encryption' | 'decryption'): void {
  if (purpose === 'encryption' ? type.supportsEncryption : type.supportsDecryption) return;
  throw new TransitError('invalid_request', `message ${purpose} not supported for key type ${type.name}`);
}

/**
 * Decodes the caller's nonce. Convergent keys of version 1 require one, which the caller must never reuse; only restored keys are of
 * that version. Managed keys accept one. Other keys refuse it.
 * @returns 12 bytes, or none
 */
export function nonceOf({ record, type }: LoadedKey, nonce = ''): Uint8Array {
  if (type.managed) return vectorOf(nonce);
  if (!record.convergent || convergenceOf(record) !== 1) {
    if (nonce === '') return noBytes;
    decodeBase64(nonce);
    throw new TransitError('invalid_request', 'provided nonce not allowed for this key');
  }
  const bytes = decodeBase64(nonce);
  if (bytes.length === nonceBytes) return bytes;
  const refusal = `base64-decoded nonce must be ${nonceBytes} bytes long when using convergent encryption with this key`;
  throw new TransitError('invalid_request', refusal);
}

/** Decodes an initialization vector of GCM. @returns 12 bytes, or none */
function vectorOf(nonce: string): Uint8Array {
  const bytes = nonce === '' ? noBytes : decodeBase64(nonce);
  if (bytes.length === 0 || bytes.length === nonceBytes) return bytes;
  throw new TransitError('invalid_request', `base64-decoded nonce must be ${nonceBytes} bytes long`);
}

/** The padding of RSA as a request names it; absent and empty names have their defaults. */
export interface PaddingNames {
  readonly paddingScheme?: string | undefined;
  /** Hash of OAEP. */
  readonly hashAlgorithm?: string | undefined;
}

type PaddingMember = 'padding_scheme' | 'hash_algorithm';

/** Returns how an error text names a member of an item. @param prefix - of members that a request has for both directions */
export const inItem =
  (index: number, prefix: '' | 'decrypt_' | 'encrypt_' = '') =>
  (member: PaddingMember): string =>
    `'[${index}].${prefix}${member}' invalid`;

const hashOf = (name: string): Hash | undefined => signatureHash(name || defaultHash);
const defaultPadding: RsaPadding = { scheme: 'oaep', hash: hashOf(defaultHash) as Hash };

/**
 * Returns the padding. Only RSA pads; other types refuse a scheme, and another hash than the default.
 * @param invalid - names a member in an error text
 * @throws TransitError `invalid_request`
 */
export function paddingOf(
  { type: { name, aead, managed } }: LoadedKey,
  { paddingScheme: scheme = '', hashAlgorithm = '' }: PaddingNames,
  invalid: (member: PaddingMember) => string,
): RsaPadding {
  const isDefaultHash = hashAlgorithm === '' || hashAlgorithm === defaultHash;
  if (scheme === '' && isDefaultHash) return defaultPadding;
  const refusal = (member: PaddingMember, fault: string): TransitError =>
    new TransitError('invalid_request', `${invalid(member)}: ${fault}`);
  const pads = aead === undefined && !managed;
  if (scheme !== '' && scheme !== 'oaep' && scheme !== 'pkcs1v15')
    throw refusal('padding_scheme', `unknown padding scheme: ${printableName(scheme)}`);
  if (scheme !== '' && !pads) throw refusal('padding_scheme', `unsupported key type ${name} for padding scheme`);
  const hash = hashOf(hashAlgorithm);
  if (hash === undefined) throw refusal('hash_algorithm', `unknown hash algorithm: ${printableName(hashAlgorithm)}`);
  if (!pads) throw refusal('hash_algorithm', `unsupported key type ${name} for hash algorithm`);
  if (scheme !== 'pkcs1v15') return { scheme: 'oaep', hash };
  if (!isDefaultHash) throw refusal('hash_algorithm', 'padding scheme pkcs1v15 uses no hash');
  return { scheme: 'pkcs1v15' };
}
