/** `not_initialized`: there is no token key yet. `record_unreadable`: a record was written by a newer version. */
export type AccessErrorCode = 'not_initialized' | 'record_unreadable' | 'invalid_token';

/** The message holds neither a token nor an accessor. */
export class AccessError extends Error {
  override readonly name = 'AccessError';
  readonly code: AccessErrorCode;
  constructor(code: AccessErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
