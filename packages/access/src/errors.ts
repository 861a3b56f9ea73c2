/**
 * `not_initialized`: there is no token key yet. `record_unreadable`: a record was written by a newer version. `bad_token`: the token
 * that a request is about does not exist. `busy_logins`: nothing was looked at. `locked_out`: a login that may not be, whatever it
 * shows. `too_many_rules`: the policies of a token are too large combined. `keys_unavailable`: what signs tokens cannot be fetched. `too_many_conflicts`: nothing was done, others were faster again and again.
 */
export type AccessErrorCode =
  | 'bad_token'
  | 'busy_logins'
  | 'invalid_policy'
  | 'invalid_request'
  | 'invalid_token'
  | 'keys_unavailable'
  | 'locked_out'
  | 'not_found'
  | 'not_initialized'
  | 'policy_too_large'
  | 'rate_limited'
  | 'record_unreadable'
  | 'too_many_conflicts'
  | 'too_many_rules';

/** The message holds neither a token nor an accessor, and nothing of a policy's text. */
export class AccessError extends Error {
  override readonly name = 'AccessError';
  readonly code: AccessErrorCode;
  constructor(code: AccessErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A caller asks too often. */
export class RateLimited extends AccessError {
  readonly limit: number;
  /** Seconds after which it may ask again. */
  readonly resetS: number;
  constructor(message: string, { limit, resetS }: { readonly limit: number; readonly resetS: number }) {
    super('rate_limited', message);
    this.limit = limit;
    this.resetS = resetS;
  }
}

export const invalidRequest = (message: string): AccessError => new AccessError('invalid_request', message);

export const recordUnreadable = (options?: ErrorOptions): AccessError =>
  new AccessError('record_unreadable', 'a record of access is not of a format that this version knows', options);
