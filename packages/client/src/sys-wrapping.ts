import type { Ask } from './client.ts';
import type { Envelope } from './envelope.ts';

/** Answers that wait for whoever has their token. */
export class WrappingCalls {
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** @param wrapTtl - such as `5m` */
  wrap(data: object, wrapTtl: string): Promise<Envelope<null>> {
    return this.#ask('POST', 'sys/wrapping/wrap', data, { wrapTtl });
  }

  /** What was wrapped, this once. */
  unwrap<Body>(token: string): Promise<Body> {
    return this.#ask('POST', 'sys/wrapping/unwrap', { token }, { open: true });
  }

  look(token: string): Promise<Envelope<{ creation_path: string; creation_time: string; creation_ttl: number }>> {
    return this.#ask('POST', 'sys/wrapping/lookup', { token }, { open: true, repeatable: true });
  }
}
