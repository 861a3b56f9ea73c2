import { Refusal } from '@transitd/storage-fsm';

export type BarrierErrorCode =
  | 'not_initialized'
  | 'already_initialized'
  | 'invalid_seal_config'
  | 'invalid_rotation_config'
  | 'seal_mismatch'
  | 'seal_unavailable'
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
 * A refused request or, with the code `barrier_corrupt`, a damaged record. The message reaches the caller: it may contain a record's path,
 * but never key material.
 */
export class BarrierError extends Refusal<BarrierErrorCode> {}
