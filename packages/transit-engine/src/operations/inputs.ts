import { noBytes } from '../aead.ts';
import { decodeBase64 } from '../base64.ts';
import { TransitError } from '../errors.ts';
import type { LoadedKey } from '../key-cache.ts';
import type { Aead } from '../key-type.ts';
import { nonceBytes } from '../nonce-pool.ts';
import { convergenceOf } from '../version-record.ts';

const paddingSchemes: readonly string[] = ['oaep', 'pkcs1v15'];

/** What selects the key of one item: empty on keys that are not derived, where a context is read and then not used. */
export function contextOf({ record }: LoadedKey, context: string): Uint8Array {
  const bytes = context === '' ? noBytes : decodeBase64(context);
  if (!record.derived) return noBytes;
  if (bytes.length > 0) return bytes;
  throw new TransitError(
    'invalid_request',
    "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key",
  );
}

/** What is hashed or authenticated. */
export function bytesOf(input: string): Buffer {
  try {
    return decodeBase64(input);
  } catch (error) {
    if (!(error instanceof TransitError)) throw error;
    throw new TransitError(error.code, `unable to decode input as base64: ${error.message}`, { cause: error });
  }
}

export function associatedDataOf(associatedData: string, index: number): Uint8Array {
  if (associatedData === '') return noBytes;
  try {
    return decodeBase64(associatedData);
  } catch (error) {
    if (!(error instanceof TransitError)) throw error;
    throw new TransitError(error.code, `unable to get associated_data/additional_data from factory[${index}]: ${error.message}`, {
      cause: error,
    });
  }
}

/** @throws TransitError `invalid_request` for a type that cannot */
export function aeadOf({ type }: LoadedKey, purpose: 'encryption' | 'decryption'): Aead {
  if (type.aead !== undefined) return type.aead;
  throw new TransitError('invalid_request', `message ${purpose} not supported for key type ${type.name}`);
}

/**
 * The nonce that convergent keys of version 1 take from their caller, who must never repeat one; only restored keys are of that kind.
 * On any other key a nonce is refused.
 * @returns 12 bytes, or none
 */
export function nonceOf({ record }: LoadedKey, nonce: string): Uint8Array {
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

/** Padding belongs to RSA; `name` is the member that carries it. */
export function refusePadding({ type }: LoadedKey, { name, scheme }: { name: string; scheme: string }, index: number): void {
  const fault = paddingFault(type, scheme);
  if (fault !== undefined) throw new TransitError('invalid_request', `'[${index}].${name}' invalid: ${fault}`);
}

/** What is wrong with a padding scheme, if something is. */
export function paddingFault({ name }: { readonly name: string }, scheme: string): string | undefined {
  if (scheme === '') return undefined;
  return paddingSchemes.includes(scheme)
    ? `unsupported key type ${name} for padding scheme`
    : `unknown padding scheme: ${scheme}`;
}
