import { AccessError, type AccessErrorCode, RateLimited } from '@transitd/access';
import { BarrierError, type BarrierErrorCode } from '@transitd/barrier';
import { StoreError, type StoreErrorCode } from '@transitd/storage-fsm';
import { TransitError, type TransitErrorCode } from '@transitd/transit-engine';
import { JoinError, type JoinErrorCode } from '../cluster/join-error.ts';
import { errorsBody } from './envelope.ts';
import type { Reply } from './reply.ts';

/** Why this server refuses a request before any engine sees it. */
export type RequestErrorCode =
  | 'audit_failed'
  | 'body_timeout'
  | 'body_too_large'
  | 'expectation_failed'
  | 'head_too_large'
  | 'index_not_reached'
  | 'invalid_field'
  | 'invalid_path'
  | 'invalid_request'
  | 'malformed_body'
  | 'namespace_not_found'
  | 'no_handler'
  | 'not_found'
  | 'not_initialized'
  | 'overloaded'
  | 'path_too_long'
  | 'permission_denied'
  | 'request_aborted'
  | 'unsupported_media_type'
  | 'unsupported_operation'
  | 'unsupported_path';

/** A request that this server refuses. The message reaches the caller; an empty one becomes `{"errors":[]}`. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly code: RequestErrorCode;
  constructor(code: RequestErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The same for every caller that may not: it does not tell whether the path, the token or the policy is wrong. */
export const permissionDenied = (): RequestError => new RequestError('permission_denied', 'permission denied');
export const unsupportedPath = (): RequestError => new RequestError('unsupported_path', 'unsupported path');
export const unsupportedOperation = (): RequestError => new RequestError('unsupported_operation', 'unsupported operation');
/** @param path - below `/v1/`, without a leading slash */
export const noHandler = (path: string): RequestError =>
  new RequestError('no_handler', `no handler for route "${path}". route entry not found.`);
export const expectationFailed = (): RequestError =>
  new RequestError('expectation_failed', 'nothing but 100-continue may be expected');

/**
 * The node has all the work that it takes on; nothing was done. 503 and not 429, which tells a caller that it asks too often itself: both
 * are repeated by Vault's clients after `Retry-After`, and proxies take a 503 to the next node.
 */
export const overloaded = (): RequestError =>
  new RequestError('overloaded', 'the node has too much to do at the moment; nothing was done');

type ErrorCode = AccessErrorCode | BarrierErrorCode | JoinErrorCode | RequestErrorCode | StoreErrorCode | TransitErrorCode;
export type Refusal = AccessError | BarrierError | JoinError | RequestError | StoreError | TransitError;

interface Answer {
  readonly status: number;
  /** `unknown`: the write may still take effect, so only a request that is safe to repeat may be repeated. */
  readonly outcome: 'refused' | 'unknown';
  /** When the reason is likely to be gone. */
  readonly retryAfterSeconds?: number;
  /** The errors are an empty list: there is nothing wrong, only nothing there. */
  readonly silent?: true;
}

const refused = (status: number): Answer => ({ status, outcome: 'refused' });
const refusedForNow = (status: number): Answer => ({ status, outcome: 'refused', retryAfterSeconds: 1 });

/** The one place where a code becomes a status: a code without a row does not compile. Every mistake of the caller is 400, but for those that HTTP has a name for. */
export const answers: Readonly<Record<ErrorCode, Answer>> = {
  already_initialized: refused(400),
  audit_failed: refused(503), // its text says what became of the request; a sink is tried again with the next one
  bad_token: refused(403),
  barrier_corrupt: refused(500),
  body_timeout: refused(408),
  body_too_large: refused(413),
  busy: refusedForNow(503),
  busy_generation: refusedForNow(503),
  busy_logins: refusedForNow(503),
  challenge_displaced: refusedForNow(503),
  challenge_expired: refused(400),
  challenge_unknown: refused(400),
  challenge_used: refused(400),
  conflict: refusedForNow(503), // another change was faster, again and again
  deletion_not_allowed: refused(400),
  disk_low: refused(503),
  expectation_failed: refused(417),
  foreign_cluster: refused(400),
  head_too_large: refused(431),
  index_not_reached: refusedForNow(412),
  invalid_ciphertext: refused(400),
  invalid_field: refused(400),
  invalid_path: refused(400),
  invalid_policy: refused(400),
  invalid_request: refused(400),
  invalid_rotation_config: refused(400),
  invalid_seal_config: refused(400),
  invalid_share: refused(400),
  invalid_token: refused(400),
  join_malformed: refused(400),
  join_proof: refused(403),
  join_seal: refused(400),
  join_secret: refused(403),
  key_not_found: refused(400), // an operation on a missing key; reading one is not_found
  key_version_unavailable: refused(400),
  keys_unavailable: refusedForNow(503),
  leader_changed: refusedForNow(503),
  leader_refused: refused(400),
  leader_unavailable: refusedForNow(503),
  leader_untrusted: refused(400),
  locked_out: refused(403),
  malformed_body: refused(400),
  name_taken: refused(400),
  managed_key_unavailable: refusedForNow(503), // the other system, not this node
  namespace_not_found: refused(404),
  no_handler: refused(404),
  node_id_used: refused(400),
  node_removed: refused(400),
  not_found: { status: 404, outcome: 'refused', silent: true },
  not_initialized: refused(400),
  not_leader: refusedForNow(503),
  overloaded: refusedForNow(503), // the node's state, not the caller's doing: another node may take it at once
  outcome_unknown: { status: 504, outcome: 'unknown' },
  path_too_long: refused(414),
  permission_denied: refused(403),
  policy_too_large: refused(413),
  rate_limited: refused(429), // it says itself for how long
  record_unreadable: refused(500),
  rekey_in_progress: refused(400),
  rekey_nonce: refused(400),
  rekey_not_started: refused(400),
  request_aborted: refused(400),
  request_refused: refused(400),
  reserved_path: refused(500), // no caller can name a record
  root_generation_in_progress: refused(400),
  root_generation_nonce: refused(400),
  root_generation_not_started: refused(400),
  seal_changed: refused(400),
  seal_mismatch: refused(400),
  sealed: refused(503), // until someone unseals it: no time can be named
  share_encoding: refused(400),
  share_missing: refused(400),
  stopped: refusedForNow(503),
  too_large: refused(413),
  too_many_conflicts: refusedForNow(503),
  too_many_rules: refused(403),
  unseal_key_not_kept: refused(409),
  unsealed: refused(400),
  unsupported_media_type: refused(415),
  unsupported_operation: refused(405),
  unsupported_path: refused(404),
};

/** Whether an error is an expected refusal. Anything else is a fault of ours and must not be answered as if it were the caller's. */
export const isRefusal = (error: unknown): error is Refusal =>
  error instanceof RequestError ||
  error instanceof TransitError ||
  error instanceof StoreError ||
  error instanceof BarrierError ||
  error instanceof JoinError ||
  error instanceof AccessError;

export function errorReply(refusal: Refusal): Reply {
  const { code, message } = refusal;
  const { status, outcome, retryAfterSeconds, silent } = answers[code];
  const text = outcome === 'unknown' ? `outcome unknown, the change may still take effect: ${message}` : message;
  const headers: Record<string, string> = {};
  const afterSeconds = refusal instanceof RateLimited ? refusal.resetS : retryAfterSeconds;
  if (afterSeconds !== undefined) headers['Retry-After'] = String(afterSeconds);
  return { status, body: errorsBody(silent || message === '' ? [] : [text]), headers };
}
