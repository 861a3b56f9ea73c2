import { Refusal, type RefusedBy } from '@transitd/storage-fsm';
import { type RefusalStatus, refusalReply, refused, refusedForNow } from './refusal.ts';
import type { Reply } from './reply.ts';

/** Reasons for which the HTTP layer refuses a request itself, before or without an engine. */
export type RequestErrorCode =
  | 'body_timeout'
  | 'body_too_large'
  | 'dr_secondary'
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

/** The refusal of a request by the HTTP layer. The message is sent to the caller; an empty message becomes `{"errors":[]}`. */
export class RequestError extends Refusal<RequestErrorCode> {}

/**
 * The error is the same for every cause, so it does not reveal whether the path, the token or the policy is wrong.
 * @param refusedBy - the cause, for the audit log
 */
export const permissionDenied = (refusedBy?: RefusedBy): RequestError =>
  new RequestError('permission_denied', 'permission denied', { refusedBy });
export const unsupportedPath = (): RequestError => new RequestError('unsupported_path', 'unsupported path');
export const unsupportedOperation = (): RequestError => new RequestError('unsupported_operation', 'unsupported operation');
/** @param path - below `/v1/`, without a leading slash */
export const noHandler = (path: string): RequestError =>
  new RequestError('no_handler', `no handler for route "${path}". route entry not found.`);
export const expectationFailed = (): RequestError =>
  new RequestError('expectation_failed', 'unsupported Expect header: only 100-continue is supported');

/**
 * The node has reached a limit; nothing was done. The status is 503 and not 429, because 429 would mean that the caller exceeds its own
 * rate limit. Vault's clients retry both after `Retry-After`, and proxies retry a 503 on the next node.
 */
export const overloaded = (): RequestError =>
  new RequestError('overloaded', 'the node has too much to do at the moment; nothing was done');

/** A cluster that follows another one for disaster recovery serves only a few paths. */
export const pathDisabled = (): RequestError =>
  new RequestError('dr_secondary', 'path disabled in replication DR secondary mode: ask the primary cluster');

/** The status of each code. */
export const requestErrorStatuses: Readonly<Record<RequestErrorCode, RefusalStatus>> = {
  body_timeout: refused(408),
  body_too_large: refused(413),
  dr_secondary: refused(400), // as Vault answers; another node of this cluster would refuse too
  expectation_failed: refused(417),
  head_too_large: refused(431),
  index_not_reached: refusedForNow(412),
  invalid_field: refused(400),
  invalid_path: refused(400),
  invalid_request: refused(400),
  malformed_body: refused(400),
  namespace_not_found: refused(404),
  no_handler: refused(404),
  not_found: { status: 404, outcome: 'refused', silent: true },
  not_initialized: refused(400),
  overloaded: refusedForNow(503), // only this node is overloaded: another node may accept the request at once
  path_too_long: refused(414),
  permission_denied: refused(403),
  request_aborted: refused(400),
  unsupported_media_type: refused(415),
  unsupported_operation: refused(405),
  unsupported_path: refused(404),
};

/** Returns the reply to a request that is refused before its operation is known. */
export const requestErrorReply = ({ code, message }: RequestError): Reply => refusalReply(requestErrorStatuses[code], message);
