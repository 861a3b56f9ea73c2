import type { ServerResponse } from 'node:http';
import { BarrierError, ProviderError } from '@transitd/barrier';
import {
  type RefusalStatus,
  type Reply,
  RequestError,
  refusalReply,
  refused,
  refusedForNow,
  requestErrorStatuses,
  sendReply,
} from '@transitd/http';
import { StoreError } from '@transitd/storage-fsm';
import { ClusterError } from './cluster-error.ts';

/** The refusals of a request by this node, its barrier or its store. */
export const clusterRefusals = [BarrierError, ClusterError, RequestError, StoreError] as const;
type ClusterRefusal = InstanceType<(typeof clusterRefusals)[number]>;

/** The status of each code; a missing code does not compile. */
export const clusterRefusalStatuses: Readonly<Record<ClusterRefusal['code'], RefusalStatus>> = {
  ...requestErrorStatuses,
  already_initialized: refused(400),
  barrier_corrupt: refused(500),
  busy: refusedForNow(503),
  challenge_displaced: refusedForNow(503),
  challenge_expired: refused(400),
  challenge_unknown: refused(400),
  challenge_used: refused(400),
  conflict: refusedForNow(503), // other changes kept winning the race
  disk_low: refused(503),
  fenced: refusedForNow(503),
  invalid_rotation_config: refused(400),
  invalid_seal_config: refused(400),
  invalid_share: refused(400),
  join_malformed: refused(400),
  join_proof: refused(403),
  join_seal: refused(400),
  join_secret: refused(403),
  leader_changed: refusedForNow(503),
  leader_refused: refused(400),
  leader_unavailable: refusedForNow(503),
  leader_untrusted: refused(400),
  level_unsupported: refused(400),
  name_taken: refused(400),
  node_id_used: refused(400),
  node_removed: refused(400),
  not_leader: refusedForNow(503),
  outcome_unknown: { status: 504, outcome: 'unknown' },
  rekey_in_progress: refused(400),
  rekey_nonce: refused(400),
  rekey_not_started: refused(400),
  request_refused: refused(400),
  reserved_path: refused(500), // a bug: callers cannot name records
  root_generation_in_progress: refused(400),
  root_generation_nonce: refused(400),
  root_generation_not_started: refused(400),
  seal_changed: refused(400),
  seal_mismatch: refused(400),
  seal_unavailable: refusedForNow(503), // the provider of the seal fails, not this node
  sealed: refused(503), // lasts until an operator unseals the node, so the reply names no time for a retry
  share_encoding: refused(400),
  share_missing: refused(400),
  stopped: refusedForNow(503),
  too_large: refused(413),
  unseal_key_not_kept: refused(409),
  unsealed: refused(400),
};

/** Whether an error is an expected refusal, not a fault of this node. */
const isClusterRefusal = (error: unknown): error is ClusterRefusal => clusterRefusals.some((each) => error instanceof each);

/** Returns the text of the reply to a refused request. Its caller may have no token, so it must not learn where the seal's provider is. */
export const refusalText = (error: Error): string => (error instanceof ProviderError ? error.summary : error.message);

const fault: Reply = { status: 500, errors: ['internal error'] };

/** Answers a call that failed, or ends the connection of an answer that has begun. @param onFault - gets an error that is no refusal */
export function sendFailure(
  res: ServerResponse,
  error: unknown,
  { head, onFault }: { readonly head: boolean; readonly onFault: (error: unknown) => void },
): void {
  if (res.headersSent) res.destroy();
  else sendReply(res, isClusterRefusal(error) ? clusterRefusalReply(error) : fault, { head });
  if (!isClusterRefusal(error)) onFault(error);
}

const clusterRefusalReply = (error: ClusterRefusal): Reply =>
  refusalReply(clusterRefusalStatuses[error.code], refusalText(error));
