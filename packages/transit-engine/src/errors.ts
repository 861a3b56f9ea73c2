/**
 * Why the engine refuses a request.
 * - `busy_generation`: too many keys that take seconds to make are being made
 * - `not_found`: nothing to read or to list under that name
 * - `key_not_found`: an operation on a key that does not exist
 * - `invalid_request`: a value, or a combination of values, that no key could accept or that this one cannot
 * - `key_version_unavailable`: a key version that does not exist or is not to be used any more
 * - `invalid_ciphertext`: not a ciphertext of this key: form, version number, length or authentication tag
 * - `deletion_not_allowed`: the key's configuration forbids it
 * - `permission_denied`: the caller may not create, or not update, at this name
 * - `managed_key_unavailable`: the system that holds a managed key does not answer, or not as it should
 * - `too_many_conflicts`: the key changed again and again under this change, which therefore did nothing
 */
export type TransitErrorCode =
  | 'busy_generation'
  | 'not_found'
  | 'key_not_found'
  | 'invalid_request'
  | 'key_version_unavailable'
  | 'invalid_ciphertext'
  | 'deletion_not_allowed'
  | 'managed_key_unavailable'
  | 'permission_denied'
  | 'too_many_conflicts';

/** A request the engine refuses. The message reaches the caller, so it holds no key material and no plaintext. */
export class TransitError extends Error {
  override readonly name = 'TransitError';
  readonly code: TransitErrorCode;
  constructor(code: TransitErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A stored record is not what the engine wrote: a fault of the store or of this program, never of a caller. */
export class DamagedRecord extends Error {
  override readonly name = 'DamagedRecord';
}

/** The refusal that every data operation gives for an unknown name. */
export const encryptionKeyNotFound = (): TransitError => new TransitError('key_not_found', 'encryption key not found');
