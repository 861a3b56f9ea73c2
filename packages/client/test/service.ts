import { randomBytes } from 'node:crypto';
import { TransitdClient } from '../src/client.ts';
import { EnvelopeCipher, type EnvelopeOptions } from '../src/envelope-cipher.ts';

/** A service that wraps data keys by remembering them. */
export class Service {
  readonly calls: string[] = [];
  readonly #keys = new Map<string, string>();
  fails = false;
  /** Size of new data keys. */
  keyBytes = 32;

  readonly fetch: typeof fetch = async (input, init) => {
    const path = new URL(String(input)).pathname.replace('/v1/transit/', '');
    this.calls.push(path.split('/')[0] ?? '');
    if (this.fails) return Response.json({ errors: ['permission denied'] }, { status: 403 });
    const body = JSON.parse(String(init?.body)) as { ciphertext?: string };
    const [, size] = /^svc:size:(\d+)$/.exec(body.ciphertext ?? '') ?? [];
    if (size !== undefined) return Response.json({ data: { plaintext: randomBytes(Number(size)).toString('base64') } });
    if (body.ciphertext !== undefined) return Response.json({ data: { plaintext: this.#keys.get(body.ciphertext) ?? '' } });
    const [plaintext, ciphertext] = [randomBytes(this.keyBytes).toString('base64'), `svc:v1:${this.#keys.size}`];
    this.#keys.set(ciphertext, plaintext);
    return Response.json({ data: { plaintext, ciphertext } });
  };

  cipher(options: EnvelopeOptions = {}, name = 'orders'): EnvelopeCipher {
    const client = new TransitdClient({ addresses: ['http://service'], token: 't', fetch: this.fetch });
    return new EnvelopeCipher(client.transit(), name, options);
  }
}
