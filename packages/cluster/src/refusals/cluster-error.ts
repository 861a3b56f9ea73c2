import { Refusal } from '@transitd/storage-fsm';

export type ClusterErrorCode =
  // Of a change of the members, the authority, the feature level or the autopilot settings.
  | 'invalid_request'
  // Of a join, sent by the leader.
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
  // Of a join, raised by the joiner.
  | 'leader_unavailable'
  | 'leader_refused'
  | 'leader_untrusted'
  | 'join_seal'
  | 'seal_changed';

/** A refused change of the cluster, or a failed join. The message reaches the caller, so it holds no key, no secret and no proof. */
export class ClusterError extends Refusal<ClusterErrorCode> {}
