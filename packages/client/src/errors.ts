/** What became of a request that failed: surely nothing, or nobody can say. */
export type Outcome = 'not_done' | 'unknown';

/** The server answered, and the answer is no. The message is the server's own, which holds no secret. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly status: number;
  /** As the server lists them; none for a thing that is not there. */
  readonly errors: readonly string[];
  readonly outcome: Outcome;
  /** Seconds after which the server expects another answer. */
  readonly retryAfterS: number | undefined;
  /** The whole answer, such as a batch of which a part failed. It may hold secrets. */
  readonly body: unknown;

  constructor({ status, errors, outcome, retryAfterS, body }: Omit<RefusedError, 'name' | 'message' | 'stack' | 'cause'>) {
    super(errors.length > 0 ? errors.join('; ') : status === 404 ? 'not found' : `status ${status}`);
    this.status = status;
    this.errors = errors;
    this.outcome = outcome;
    this.retryAfterS = retryAfterS;
    this.body = body;
    // Who prints an error whole prints no secret.
    Object.defineProperty(this, 'body', { enumerable: false });
  }
}

/** There was no answer, or no whole one. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
  readonly address: string;
  readonly outcome: Outcome;

  /** @param changes - the request was to change something, which matters when the outcome is unknown */
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
