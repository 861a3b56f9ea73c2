import { Refusal, type RefusedBy } from '@transitd/storage-fsm';

/**
 * - `not_initialized`: there is no token key yet
 * - `record_unreadable`: a newer version wrote the record
 * - `bad_token`: the token that the request names does not exist
 * - `claim_refused`: a key has signed the token of a login, and one of its claims is refused
 * - `busy_logins`: too many logins are waiting, so this login was not checked
 * - `login_refused`: the credentials of a login are refused
 * - `locked_out`: the login is refused whatever its credentials, because of too many failures
 * - `too_many_rules`: the policies of a token have too many rules, or list too many values, together
 * - `keys_unavailable`: the keys that verify signed tokens cannot be fetched or used
 * - `review_unavailable`: the server that has to review the token of a login did not review it
 * - `too_many_conflicts`: every attempt conflicted with another write; nothing was changed
 */
type AccessErrorCode =
  | 'bad_token'
  | 'busy_logins'
  | 'claim_refused'
  | 'invalid_policy'
  | 'invalid_request'
  | 'invalid_token'
  | 'keys_unavailable'
  | 'locked_out'
  | 'login_refused'
  | 'not_found'
  | 'not_initialized'
  | 'policy_too_large'
  | 'rate_limited'
  | 'record_unreadable'
  | 'review_unavailable'
  | 'too_many_conflicts'
  | 'too_many_rules';

/** An error of this package. Its message never contains a token, an accessor or text of a policy. */
export class AccessError extends Refusal<AccessErrorCode> {}

/** The caller exceeded a rate limit. */
export class RateLimited extends AccessError {
  readonly limit: number;
  /** Seconds until the caller may try again. */
  readonly resetS: number;
  constructor(message: string, { limit, resetS }: { readonly limit: number; readonly resetS: number }) {
    super('rate_limited', message);
    this.limit = limit;
    this.resetS = resetS;
  }
}

/** @param by - what refused a login, if the message does not say it; for the audit log */
export const invalidRequest = (message: string, by?: RefusedBy): AccessError =>
  new AccessError('invalid_request', message, { refusedBy: by });

/** More values of a claim are not recorded. */
const givenMax = 64;

/**
 * Returns what refused a login, for the audit log.
 * @param constraint - the setting or credential by its name on the wire; for a claim `bound_claims.` and the name of the claim
 * @param value - the refused claim, or a list of such values; undefined if the claim is missing, or if the request itself shows the value
 */
export const refusedBy = (constraint: string, value?: unknown): RefusedBy => ({
  constraint,
  ...(value !== undefined && { given: (Array.isArray(value) ? value : [value]).slice(0, givenMax).map(textOf) }),
});

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value);
  } catch {
    return 'too deep'; // the parser reads lists in lists without end, but they cannot be written
  }
}

/**
 * Returns the error for a transaction whose conditions did not hold.
 * @param what - the record, such as `the role`
 */
export const conflict = (what: string, { by = 'other requests', outcome = 'nothing was done' } = {}): AccessError =>
  new AccessError('too_many_conflicts', `${what} was changed by ${by} at the same time; ${outcome}, try again`);

export const recordUnreadable = (options?: ErrorOptions): AccessError =>
  new AccessError('record_unreadable', 'this version does not know the format of an access record', options);
