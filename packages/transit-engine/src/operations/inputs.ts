import { noBytes } from '../aead.ts';
import { decodeBase64 } from '../base64.ts';
import { TransitError } from '../errors.ts';
import type { LoadedKey } from '../key-cache.ts';

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

/** No key of today takes a nonce from its caller, who could repeat one. */
export function refuseNonce(nonce: string): void {
  if (nonce === '') return;
  decodeBase64(nonce);
  throw new TransitError('invalid_request', 'provided nonce not allowed for this key');
}

/** Padding belongs to RSA; `name` is the member that carries it. */
export function refusePadding({ type }: LoadedKey, { name, scheme }: { name: string; scheme: string }, index: number): void {
  if (scheme === '') return;
  const fault = paddingSchemes.includes(scheme)
    ? `unsupported key type ${type.name} for padding scheme`
    : `unknown padding scheme: ${scheme}`;
  throw new TransitError('invalid_request', `'[${index}].${name}' invalid: ${fault}`);
}
