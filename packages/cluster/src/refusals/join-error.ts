import { Refusal } from '@transitd/storage-fsm';

export type JoinErrorCode =
  // Sent by the leader.
  | 'join_malformed'
  | 'challenge_unknown'
  | 'challenge_used'
  | 'challenge_expired'
  | 'challenge_displaced'
  | 'join_proof'
  | 'request_refused'
  | 'name_taken'
  | 'node_id_used'
  | 'node_removed'
  | 'level_unsupported'
  | 'leader_changed'
  // Raised by the joiner.
  | 'leader_unavailable'
  | 'leader_refused'
  | 'leader_untrusted'
  | 'foreign_cluster'
  | 'join_seal'
  | 'seal_changed';

/** A failed join. The message reaches the caller, so it holds no key, no secret and no proof. */
export class JoinError extends Refusal<JoinErrorCode> {}
