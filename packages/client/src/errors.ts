/** Outcome of a failed request: it certainly had no effect (`not_done`), or it may have had one (`unknown`). */
export type Outcome = 'not_done' | 'unknown';

/** The server refused the request. The message is the server's text, which contains no secrets. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly status: number;
  /** Method and path, such as `GET transit/keys/orders`. */
  readonly request: string;
  /** Errors in the response; empty when something was not found. */
  readonly errors: readonly string[];
  readonly outcome: Outcome;
  /** Seconds after which the server suggests a retry. */
  readonly retryAfterS: number | undefined;
  /** The whole response body, such as a partly failed batch. It may contain secrets. */
  readonly body: unknown;

  constructor({
    status,
    request,
    errors,
    outcome,
    retryAfterS,
    body,
  }: Omit<RefusedError, 'name' | 'message' | 'stack' | 'cause'>) {
    super(errors.length > 0 ? errors.join('; ') : status === 404 ? 'not found' : `status ${status}`);
    this.status = status;
    this.request = request;
    this.errors = errors;
    this.outcome = outcome;
    this.retryAfterS = retryAfterS;
    this.body = body;
    // Not enumerable, so that printing the error prints no secrets.
    Object.defineProperty(this, 'body', { enumerable: false });
  }
}

/** There was no response, or an incomplete one. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
  readonly address: string;
  readonly outcome: Outcome;

  /** @param changes - whether the request was a change, which matters if the outcome is unknown */
  constructor(
    { address, outcome, reason, changes }: { address: string; outcome: Outcome; reason: string; changes: boolean },
    options?: ErrorOptions,
  ) {
    const doubt = changes && outcome === 'unknown' ? '; the request may have taken effect' : '';
    super(`no answer from ${address}: ${reason}${doubt}`, options);
    this.address = address;
    this.outcome = outcome;
  }
}
