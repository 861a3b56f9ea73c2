import {
  ciphertextCharactersMax,
  keyIdCharactersMax,
  ProviderError,
  type ProviderFailure,
  type WrappedKey,
} from '@transitd/barrier';
import { reasonOf } from '@transitd/process';
import { z } from 'zod';
import { purpose } from '../backend/purpose.ts';
import type { SealBackend } from '../backend/seal-backend.ts';
import type { Exchange, ProviderAnswer } from '../http/exchange.ts';
import { printable } from '../http/printable.ts';
import type { CredentialSource } from './credentials.ts';
import { signedHeaders } from './signature.ts';

export interface AwsKmsSealParts {
  readonly region: string;
  /** Id, ARN or alias of a symmetric key. */
  readonly keyId: string;
  /** URL of the service. */
  readonly endpoint: string;
  readonly credentials: Pick<CredentialSource, 'get' | 'forget'>;
  readonly exchange: Exchange;
  /** Returns milliseconds since the epoch. AWS refuses a signature whose time differs from its own clock by more than five minutes. */
  readonly nowMs: () => number;
}

const encrypted = z.object({
  CiphertextBlob: z.base64().min(1).max(ciphertextCharactersMax),
  KeyId: z
    .string()
    .regex(/^[\x21-\x7e]+$/)
    .max(keyIdCharactersMax),
});
const decrypted = z.object({ Plaintext: z.base64().max(1024) });
const drawn = z.object({ Plaintext: z.base64().max(2048) });
const refusal = z.object({ __type: z.string(), message: z.string().optional(), Message: z.string().optional() });

type Operation = 'Encrypt' | 'Decrypt' | 'GenerateRandom';

/** A seal with a symmetric key in AWS KMS. */
export class AwsKmsSeal implements SealBackend {
  readonly type = 'awskms';
  readonly #parts: AwsKmsSealParts;

  constructor(parts: AwsKmsSealParts) {
    this.#parts = parts;
  }

  async wrap(plaintext: Uint8Array): Promise<WrappedKey> {
    const input = { ...this.#key, Plaintext: Buffer.from(plaintext).toString('base64') };
    const { CiphertextBlob, KeyId } = await this.#operate('Encrypt', encrypted, input);
    return { keyId: KeyId, ciphertext: CiphertextBlob };
  }

  /** Always names the configured key. Otherwise a manipulated record could make this node use a key of another owner. */
  async unwrap({ ciphertext, keyId }: WrappedKey): Promise<Buffer> {
    try {
      const { Plaintext } = await this.#operate('Decrypt', decrypted, { ...this.#key, CiphertextBlob: ciphertext });
      return Buffer.from(Plaintext, 'base64');
    } catch (error) {
      if (!(error instanceof ProviderError && error.failure === 'wrong_key')) throw error;
      throw new ProviderError('wrong_key', `${error.message}; the stored key was encrypted by ${keyId}`, { cause: error });
    }
  }

  /** Draws from the service, not by the key. */
  async random(bytes: number): Promise<Buffer> {
    const { Plaintext } = await this.#operate('GenerateRandom', drawn, { NumberOfBytes: bytes });
    return Buffer.from(Plaintext, 'base64');
  }

  get #key(): object {
    return { KeyId: this.#parts.keyId, EncryptionContext: { purpose: purpose.toString() } };
  }

  async #operate<S extends z.ZodType>(operation: Operation, form: S, input: object): Promise<z.output<S>> {
    const { region, endpoint, credentials, exchange, nowMs } = this.#parts;
    const body = JSON.stringify(input);
    const unsigned = {
      method: 'POST',
      host: new URL(endpoint).host,
      headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `TrentService.${operation}` },
      body,
    } as const;
    const scope = { credentials: await credentials.get(), region, service: 'kms', time: new Date(nowMs()) };
    let answer: ProviderAnswer;
    try {
      answer = await exchange({ method: 'POST', path: '/', headers: signedHeaders(unsigned, scope), body });
    } catch (error) {
      throw new ProviderError('unreachable', `${this.#name} does not answer: ${reasonOf(error)}`, { cause: error });
    }
    if (answer.status !== 200) throw this.#failureOf(answer, operation);
    const result = form.safeParse(answer.json);
    if (result.success) return result.data;
    throw new ProviderError('malformed', `${this.#name} returned an answer that does not come from AWS KMS: check seal.endpoint`);
  }

  #failureOf({ status, json, retryAfterMs }: ProviderAnswer, operation: Operation): ProviderError {
    const { __type = '', message, Message } = refusal.safeParse(json).data ?? {};
    const type = __type.slice(__type.lastIndexOf('#') + 1);
    const failure = failures[type] ?? failureOfStatus(status);
    if (failure === 'permission') this.#parts.credentials.forget();
    const said = [`status ${status}`, type, message ?? Message ?? ''].filter((part) => part !== '').map(printable);
    const needs = failure === 'permission' ? `, which need ${rightsFor[operation]}` : '';
    const options = retryAfterMs === undefined ? {} : { retryAfterMs };
    return new ProviderError(failure, `${this.#name} ${says[failure]}${needs}: ${said.join(': ')}`, options);
  }

  get #name(): string {
    return `the awskms seal with the key ${this.#parts.keyId} at ${this.#parts.endpoint}`;
  }
}

const ofKey = 'kms:Encrypt and kms:Decrypt for it';
const rightsFor: Readonly<Record<Operation, string>> = { Encrypt: ofKey, Decrypt: ofKey, GenerateRandom: 'kms:GenerateRandom' };

const says: Readonly<Record<ProviderFailure, string>> = {
  unreachable: 'cannot be served now',
  throttled: 'is used too often',
  permission: 'refuses the credentials of this node',
  wrong_key: 'cannot be used for this',
  malformed: 'returned an answer that does not come from AWS KMS',
  cycle: 'cannot be used for this',
  unsupported: 'cannot be used for this',
};

/** Kind of failure for each error type of AWS. For other types, the HTTP status decides. */
const failures: Readonly<Record<string, ProviderFailure>> = {
  AccessDeniedException: 'permission',
  ExpiredTokenException: 'permission',
  IncompleteSignatureException: 'permission',
  InvalidSignatureException: 'permission',
  MissingAuthenticationTokenException: 'permission',
  NotAuthorizedException: 'permission',
  UnrecognizedClientException: 'permission',
  DisabledException: 'wrong_key',
  IncorrectKeyException: 'wrong_key',
  InvalidCiphertextException: 'wrong_key',
  InvalidGrantTokenException: 'wrong_key',
  InvalidKeyUsageException: 'wrong_key',
  KMSInvalidStateException: 'wrong_key',
  NotFoundException: 'wrong_key',
  ValidationException: 'wrong_key',
  LimitExceededException: 'throttled',
  ThrottlingException: 'throttled',
};

function failureOfStatus(status: number): ProviderFailure {
  if (status === 429) return 'throttled';
  if (status === 401 || status === 403) return 'permission';
  return status >= 500 ? 'unreachable' : 'malformed';
}
