import type { SendRequest } from './connection.ts';
import type { Envelope } from './envelope.ts';

/** Calls for wrapped responses. */
export class WrappingCalls {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  /** Wraps data. @param wrapTtl - such as `5m` */
  wrap(data: object, wrapTtl: string): Promise<Envelope<null>> {
    return this.#send('POST', 'sys/wrapping/wrap', data, { wrapTtl });
  }

  /** Returns the wrapped response; works only once. */
  unwrap<Body>(token: string): Promise<Body> {
    return this.#send('POST', 'sys/wrapping/unwrap', { token }, { open: true });
  }

  look(token: string): Promise<Envelope<{ creation_path: string; creation_time: string; creation_ttl: number }>> {
    return this.#send('POST', 'sys/wrapping/lookup', { token }, { open: true, repeatable: true });
  }
}
