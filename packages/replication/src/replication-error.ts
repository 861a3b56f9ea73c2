import { Refusal } from '@transitd/storage-fsm';

/**
 * - `used`, `expired`, `revoked`, `replaced`: the activation token or the certificate is no longer valid; `used` by another key
 * - `name_taken`: another cluster follows under the name
 * - `key_missing`, `wrong_key`: an encrypted activation token cannot be read
 * - `unreachable`: no node of the primary answered, so another attempt with the same key may succeed
 * - `untrusted`: the answer of the primary is malformed
 * - `wrong_mode`: the role of this cluster does not allow it
 * - `refused`: the state of this cluster does not allow it, or the primary refused it
 * - `operation_token`: the operation token is not valid, or is in use
 */
type ReplicationErrorCode =
  | 'expired'
  | 'key_missing'
  | 'malformed'
  | 'malformed_id'
  | 'malformed_key'
  | 'malformed_ttl'
  | 'name_taken'
  | 'operation_token'
  | 'refused'
  | 'replaced'
  | 'revoked'
  | 'seal_type'
  | 'too_many'
  | 'unknown_secondary'
  | 'unknown_token'
  | 'unreachable'
  | 'untrusted'
  | 'used'
  | 'wrong_key'
  | 'wrong_mode';

/** A refused operation of replication: nothing has changed. The message reaches the caller and repeats no part of a token or key. */
export class ReplicationError extends Refusal<ReplicationErrorCode> {}
