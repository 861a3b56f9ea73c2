import { ciphertextCharactersMax, keyIdCharactersMax, type ProviderFailure, type WrappedKey } from '@transitd/barrier';
import { z } from 'zod';
import { purpose } from '../backend/purpose.ts';
import type { SealBackend } from '../backend/seal-backend.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Expiring } from '../http/expiring.ts';
import { bodyOf, failureOfStatus, refusalIn, sendTo, serviceError } from '../http/service-answer.ts';

export interface GcpKmsSealParts {
  readonly project: string;
  /** Location of the key ring, such as `global` or `europe-west3`. */
  readonly region: string;
  readonly keyRing: string;
  /** Name of a symmetric key. */
  readonly cryptoKey: string;
  readonly token: Pick<Expiring<string>, 'get' | 'forget'>;
  readonly exchange: Exchange;
}

const encrypted = z.object({
  name: z
    .string()
    .regex(/^projects\/[\x21-\x7e]+\/cryptoKeyVersions\/[1-9]\d{0,8}$/)
    .max(keyIdCharactersMax),
  ciphertext: z.base64().min(1).max(ciphertextCharactersMax),
});
const decrypted = z.object({ plaintext: z.base64().max(1024) });
const additionalAuthenticatedData = purpose.toString('base64');

/** A seal with a symmetric key in Google Cloud KMS. */
export class GcpKmsSeal implements SealBackend {
  readonly type = 'gcpckms';
  readonly #parts: GcpKmsSealParts;

  constructor(parts: GcpKmsSealParts) {
    this.#parts = parts;
  }

  async wrap(key: Uint8Array): Promise<WrappedKey> {
    const plaintext = Buffer.from(key).toString('base64');
    const { name, ciphertext } = await this.#operate('encrypt', encrypted, { plaintext });
    return { keyId: name, ciphertext };
  }

  async unwrap({ ciphertext, keyId }: WrappedKey): Promise<Buffer> {
    const hint = `; the stored key was encrypted by ${keyId}`;
    return Buffer.from((await this.#operate('decrypt', decrypted, { ciphertext }, hint)).plaintext, 'base64');
  }

  async #operate<S extends z.ZodType>(operation: 'encrypt' | 'decrypt', form: S, input: object, hint = ''): Promise<z.output<S>> {
    const { token, exchange } = this.#parts;
    const answer = await sendTo(exchange, this.#name, {
      method: 'POST',
      path: `/v1/${this.#path}:${operation}`,
      headers: { authorization: `Bearer ${await token.get()}` },
      body: { ...input, additionalAuthenticatedData },
    });
    if (answer.status === 200) return bodyOf(form, answer, this.#name);
    if (answer.status === 401) token.forget();
    const failure = failures.get(refusalIn(answer).code) ?? failureOfStatus(answer.status);
    const name = failure === 'wrong_key' ? `${this.#name}${hint}` : this.#name;
    throw serviceError(failure, name, answer, 'the role roles/cloudkms.cryptoKeyEncrypterDecrypter for it');
  }

  get #path(): string {
    const { project, region, keyRing, cryptoKey } = this.#parts;
    return `projects/${project}/locations/${region}/keyRings/${keyRing}/cryptoKeys/${cryptoKey}`;
  }

  get #name(): string {
    return `the gcpckms seal with the key ${this.#path}`;
  }
}

/** Kind of failure for each status name in an error. For other names, the HTTP status decides. */
const failures: ReadonlyMap<string, ProviderFailure> = new Map([
  ['RESOURCE_EXHAUSTED', 'throttled'],
  ['FAILED_PRECONDITION', 'wrong_key'],
]);
