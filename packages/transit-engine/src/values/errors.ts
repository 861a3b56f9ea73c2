import { Refusal } from '@transitd/storage-fsm';

/**
 * The reason why the engine refuses a request.
 * - `busy_generation`: too many RSA keys are being generated or checked
 * - `not_found`: nothing to read or to list under this name
 * - `key_not_found`: the key of an operation does not exist
 * - `invalid_request`: a value, or a combination of values, that no key accepts or that this key does not accept
 * - `not_supported`: keys of this type, or the algorithm in the request, do not support the operation
 * - `key_version_unavailable`: the key version does not exist or may no longer be used
 * - `invalid_ciphertext`: not a ciphertext of this key: wrong form, version number, length or authentication tag
 * - `soft_deleted`: the key was soft-deleted, and may not be used until it is restored
 * - `deletion_not_allowed`: the key's configuration forbids its deletion
 * - `permission_denied`: the caller may not create, or not update, a key of this name
 * - `managed_key_unavailable`: the system that holds a managed key does not answer, or answers with an error
 * - `unconfirmed`: the secondary clusters have not confirmed key material, which may not be used until then
 * - `too_many_conflicts`: other changes of the key came first at every attempt; nothing was changed
 */
export type TransitErrorCode =
  | 'busy_generation'
  | 'not_found'
  | 'key_not_found'
  | 'invalid_request'
  | 'not_supported'
  | 'key_version_unavailable'
  | 'invalid_ciphertext'
  | 'soft_deleted'
  | 'deletion_not_allowed'
  | 'managed_key_unavailable'
  | 'permission_denied'
  | 'unconfirmed'
  | 'too_many_conflicts';

/** A refused request. The message reaches the caller, so it contains no key material and no plaintext. */
export class TransitError extends Refusal<TransitErrorCode> {}

/** A stored record that the engine cannot have written: an error of the store or of this program, never of a caller. */
export class DamagedRecord extends Error {
  override readonly name = 'DamagedRecord';
}

/** The refusal of a caller who lacks a capability on the key. @param constraint - for the audit log */
export const permissionDenied = (constraint: 'capabilities.create' | 'capabilities.update' | 'deny'): TransitError =>
  new TransitError('permission_denied', 'permission denied', { refusedBy: { constraint } });

/** The refusal of every data operation for an unknown key name. */
export const encryptionKeyNotFound = (): TransitError => new TransitError('key_not_found', 'encryption key not found');
