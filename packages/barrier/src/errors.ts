export type BarrierErrorCode =
  | 'not_initialized'
  | 'already_initialized'
  | 'invalid_seal_config'
  | 'invalid_rotation_config'
  | 'seal_mismatch'
  | 'share_missing'
  | 'share_encoding'
  | 'invalid_share'
  | 'unsealed'
  | 'reserved_path'
  | 'conflict'
  | 'unseal_key_not_kept'
  | 'join_secret'
  | 'rekey_in_progress'
  | 'rekey_not_started'
  | 'rekey_nonce'
  | 'root_generation_in_progress'
  | 'root_generation_not_started'
  | 'root_generation_nonce'
  | 'barrier_corrupt';

/**
 * A request that the barrier refuses, or, as `barrier_corrupt`, a record that is not what was once written there.
 * The message reaches the caller, so it holds no key material; a record's path may stand in it.
 */
export class BarrierError extends Error {
  override readonly name = 'BarrierError';
  readonly code: BarrierErrorCode;
  constructor(code: BarrierErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
