import {
  ciphertextCharactersMax,
  keyIdCharactersMax,
  ProviderError,
  type ProviderFailure,
  type WrappedKey,
} from '@transitd/barrier';
import { z } from 'zod';
import { purpose } from '../backend/purpose.ts';
import type { SealBackend } from '../backend/seal-backend.ts';
import {
  type AwsCall,
  type AwsRefusal,
  type AwsService,
  type ClientSettings,
  callAws,
  failureOfStatus,
  withoutTrace,
} from './aws-service.ts';
import type { CredentialSource } from './credentials.ts';

export interface AwsKmsSealParts {
  readonly service: AwsService;
  /** Id, ARN or alias of a symmetric key. */
  readonly keyId: string;
  readonly credentials: Pick<CredentialSource, 'get' | 'forget'>;
}

type Sdk = typeof import('@aws-sdk/client-kms');

const bytes = (max: number) => z.instanceof(Uint8Array).refine(({ length }) => length >= 1 && length <= max);
/** ARN of a key, or its id alone. Nothing else is put into an error: an endpoint could repeat the key that it was to encrypt. */
const keyForm = /^(?:arn:(?<partition>[a-z-]{1,32}):kms:[a-z0-9-]{1,32}:(?<account>\d{12}):key\/)?(?<id>[A-Za-z0-9-]{1,36})$/;
const KeyId = z.string().regex(keyForm).max(keyIdCharactersMax);
const encrypted = z.object({ CiphertextBlob: bytes((ciphertextCharactersMax / 4) * 3), KeyId });
const decrypted = z.object({ Plaintext: bytes(768), KeyId });
const drawn = z.object({ Plaintext: bytes(1536) });

type Operation = 'Encrypt' | 'Decrypt' | 'GenerateRandom';

interface OperationCall<S extends z.ZodType> extends Pick<AwsCall<S>, 'form' | 'secrets'> {
  readonly operation: Operation;
}

/** A seal with a symmetric key in AWS KMS. */
export class AwsKmsSeal implements SealBackend {
  readonly type = 'awskms';
  readonly #parts: AwsKmsSealParts;

  constructor(parts: AwsKmsSealParts) {
    this.#parts = parts;
  }

  async wrap(plaintext: Uint8Array): Promise<WrappedKey> {
    const { keyId: wanted } = this.#parts;
    const secrets = [Buffer.from(plaintext).toString('base64')];
    const answer = await this.#operate(
      { operation: 'Encrypt', form: encrypted, secrets },
      ({ KMSClient, EncryptCommand }, settings) =>
        withoutTrace(new KMSClient(settings)).send(new EncryptCommand({ ...this.#key, Plaintext: plaintext })),
    );
    if (!isAlias(wanted)) this.#requireKey(answer.KeyId, wanted);
    return { keyId: answer.KeyId, ciphertext: viewOf(answer.CiphertextBlob).toString('base64') };
  }

  /** Always names the configured key. Otherwise a manipulated record could make this node use a key of another owner. */
  async unwrap({ ciphertext, keyId }: WrappedKey): Promise<Buffer> {
    const CiphertextBlob = Buffer.from(ciphertext, 'base64');
    try {
      const answer = await this.#operate({ operation: 'Decrypt', form: decrypted }, ({ KMSClient, DecryptCommand }, settings) =>
        withoutTrace(new KMSClient(settings)).send(new DecryptCommand({ ...this.#key, CiphertextBlob })),
      );
      this.#requireKey(answer.KeyId, keyId);
      return viewOf(answer.Plaintext);
    } catch (error) {
      if (!(error instanceof ProviderError && error.failure === 'wrong_key')) throw error;
      throw new ProviderError('wrong_key', `${error.message}; the stored key was encrypted by ${keyId}`, { cause: error });
    }
  }

  /** Draws from the service, not by the key. */
  async random(count: number): Promise<Buffer> {
    const { Plaintext } = await this.#operate(
      { operation: 'GenerateRandom', form: drawn },
      ({ KMSClient, GenerateRandomCommand }, settings) =>
        withoutTrace(new KMSClient(settings)).send(new GenerateRandomCommand({ NumberOfBytes: count })),
    );
    return viewOf(Plaintext);
  }

  get #key() {
    return { KeyId: this.#parts.keyId, EncryptionContext: { purpose: purpose.toString() } };
  }

  async #operate<S extends z.ZodType>(
    { operation, ...call }: OperationCall<S>,
    send: (sdk: Sdk, settings: ClientSettings) => Promise<unknown>,
  ): Promise<z.output<S>> {
    const { service, credentials } = this.#parts;
    const sdk = await import('@aws-sdk/client-kms');
    return callAws(service, {
      ...call,
      name: this.#name,
      credentials: await credentials.get(),
      send: (settings) => send(sdk, settings),
      errorOf: (refusal) => this.#errorOf(refusal, operation),
    });
  }

  #errorOf({ status, type, said, options }: AwsRefusal, operation: Operation): ProviderError {
    const failure = failures.get(type) ?? failureOfStatus(status);
    if (failure === 'permission') this.#parts.credentials.forget();
    const needs = failure === 'permission' ? `, which need ${rightsFor[operation]}` : '';
    return new ProviderError(failure, `${this.#name} ${says[failure]}${needs}: ${said}`, options);
  }

  /** @throws ProviderError if the service used another key */
  #requireKey(used: string, wanted: string): void {
    if (isSameKey(used, wanted)) return;
    throw new ProviderError('malformed', `${this.#name} used the key ${used} instead of ${wanted}: check seal.endpoint`);
  }

  get #name(): string {
    return `the awskms seal with the key ${this.#parts.keyId} at ${this.#parts.service.endpoint}`;
  }
}

const isAlias = (keyId: string): boolean => /(^|:)alias\//.test(keyId);

/** Compares the ids and, of two ARNs, also partitions and accounts. A key of several regions has the same id in each of them. */
function isSameKey(one: string, other: string): boolean {
  const [a, b] = [one, other].map((keyId) => keyForm.exec(keyId)?.groups);
  if (a === undefined || b === undefined || a['id'] !== b['id']) return false;
  const { account, partition } = a;
  if (account === undefined || b['account'] === undefined) return true;
  return account === b['account'] && partition === b['partition'];
}

/** Returns the same memory, so that wiping the buffer wipes the key. */
const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength);

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
const failures: ReadonlyMap<string, ProviderFailure> = new Map([
  ['AccessDeniedException', 'permission'],
  ['ExpiredTokenException', 'permission'],
  ['IncompleteSignatureException', 'permission'],
  ['InvalidSignatureException', 'permission'],
  ['MissingAuthenticationTokenException', 'permission'],
  ['NotAuthorizedException', 'permission'],
  ['UnrecognizedClientException', 'permission'],
  ['DisabledException', 'wrong_key'],
  ['IncorrectKeyException', 'wrong_key'],
  ['InvalidCiphertextException', 'wrong_key'],
  ['InvalidGrantTokenException', 'wrong_key'],
  ['InvalidKeyUsageException', 'wrong_key'],
  ['KMSInvalidStateException', 'wrong_key'],
  ['NotFoundException', 'wrong_key'],
  ['ValidationException', 'wrong_key'],
  ['LimitExceededException', 'throttled'],
  ['ThrottlingException', 'throttled'],
]);
