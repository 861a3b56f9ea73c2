import { randomBytes } from 'node:crypto';
import { type NamedLibrary, Pkcs11Failure, type Pkcs11FailureCode, Pkcs11Tokens, type TokenKey } from '@transitd/pkcs11';
import type { Store } from '@transitd/storage-fsm';
import {
  type BoundManagedKey,
  type ManagedKey,
  type ManagedKeyRecord,
  type ManagedKeyReference,
  ManagedKeyRegistry,
  type ManagedKeys,
  managedPair,
  managedScheme,
  pkcs11Mechanisms,
  TransitError,
  type TransitErrorCode,
} from '@transitd/transit-engine';

/** Returns the managed keys of the records in `store`. @param libraries - from the configuration */
export function managedKeysOf(store: Store, libraries: readonly NamedLibrary[]): TokenManagedKeys {
  const registry = new ManagedKeyRegistry({ store, libraries: libraries.map(({ name }) => name) });
  return new TokenManagedKeys({ registry, tokens: new Pkcs11Tokens({ libraries }) });
}

/** The registered managed keys, and the tokens that hold them. */
export class TokenManagedKeys {
  readonly registry: ManagedKeyRegistry;
  readonly #tokens: Pkcs11Tokens;

  constructor({ registry, tokens }: { readonly registry: ManagedKeyRegistry; readonly tokens: Pkcs11Tokens }) {
    this.registry = registry;
    this.#tokens = tokens;
  }

  /** Logs out of every token. The keys cannot be used afterwards. */
  close(): void {
    this.#tokens.close();
  }

  /**
   * Returns the keys that a mount may use: those allowed to it, and those for any mount.
   * @param allowed - returns their names; called for each use, so that a revoked key is refused at once
   */
  forMount(allowed: () => readonly string[]): ManagedKeys {
    const mayUse = ({ anyMount, name }: ManagedKeyRecord): boolean => anyMount || allowed().includes(name);
    return {
      bind: async (reference) => {
        const record = await this.#find(reference);
        if (record === undefined || !mayUse(record)) throw notFound(reference.managedKeyName || (reference.managedKeyId ?? ''));
        return this.bind(record);
      },
      find: async (id) => {
        const record = await this.registry.byId(id);
        if (record === undefined || !mayUse(record)) throw notFound(id);
        return this.#key(record);
      },
    };
  }

  /** Finds the key in its token, or generates it there if that is allowed. @throws TransitError */
  async bind(record: ManagedKeyRecord): Promise<BoundManagedKey> {
    const publicKey = await withTransitErrors(record, this.#describe(record));
    if (publicKey !== undefined && (await managedScheme(publicKey)) === undefined) {
      throw refusal(record, 'the key in the token is of a size or on a curve that is not supported');
    }
    return { id: record.id, ...(publicKey && { publicKey }) };
  }

  /**
   * Signs random bytes, so that no caller gets a signature of chosen data, and verifies the signature. Generates the key first if it is
   * missing and that is allowed.
   * @throws TransitError
   */
  async testSign(record: ManagedKeyRecord): Promise<void> {
    if (!record.usages.includes('sign')) throw refusal(record, 'it may not be used to sign');
    const { publicKey } = await this.bind(record);
    const { sign } = await managedPair(this.#key(record), publicKey);
    await sign?.(randomBytes(testBytes), testOptions);
  }

  #key(record: ManagedKeyRecord): ManagedKey {
    const tokens = this.#tokens;
    const key = tokenKey(record);
    return {
      name: record.name,
      algorithm: pkcs11Mechanisms[record.mechanism].algorithm,
      usages: new Set(record.usages),
      sign: (input) => withTransitErrors(record, tokens.sign(key, input)),
      encrypt: (input) => withTransitErrors(record, tokens.encrypt(key, input)),
      decrypt: (input) => withTransitErrors(record, tokens.decrypt(key, input)),
    };
  }

  /** @returns the public half, if the key has one */
  async #describe(record: ManagedKeyRecord): Promise<Buffer | undefined> {
    const key = tokenKey(record);
    try {
      return await this.#tokens.describe(key);
    } catch (error) {
      const missing = error instanceof Pkcs11Failure && error.code === 'key_not_found';
      if (!missing || !record.allowGenerateKey) throw error;
    }
    const { keyBits, curve } = record;
    await this.#tokens.generate(key, { ...(keyBits !== undefined && { bits: keyBits }), ...(curve && { curve }) });
    return this.#tokens.describe(key);
  }

  /** Finds a record by name or id. If both are given, they must identify the same key. */
  async #find({ managedKeyName: name = '', managedKeyId: id = '' }: ManagedKeyReference) {
    const record = name === '' ? await this.registry.byId(id) : await this.registry.byName(name);
    return id === '' || record?.id === id ? record : undefined;
  }
}

const testBytes = 32;
const testOptions = {
  hash: 'sha2-256',
  prehashed: false,
  signatureContext: new Uint8Array(0),
  signatureAlgorithm: 'pss',
  saltLength: 'hash',
  marshaling: 'asn1',
} as const;

function tokenKey({ library, slot, tokenLabel, pin, keyLabel, keyId, mechanism }: ManagedKeyRecord): TokenKey {
  return {
    library,
    ...(slot !== undefined && { slot }),
    ...(tokenLabel !== undefined && { tokenLabel }),
    pin,
    ...(keyLabel !== undefined && { keyLabel }),
    ...(keyId !== undefined && { keyId: Buffer.from(keyId, 'hex') }),
    mechanism,
  };
}

/**
 * The error code for each failure of a token. A failure that only an operator can correct is a refusal, because a retry is useless. A token
 * that the library does not show may come back.
 */
const codes: Readonly<Record<Pkcs11FailureCode, TransitErrorCode>> = {
  ambiguous: 'invalid_request',
  binding_missing: 'invalid_request',
  busy: 'managed_key_unavailable',
  closed: 'managed_key_unavailable',
  key_not_found: 'invalid_request',
  key_unsuitable: 'invalid_request',
  library_unusable: 'invalid_request',
  not_authentic: 'invalid_ciphertext',
  not_possible: 'invalid_request',
  pin_refused: 'invalid_request',
  timeout: 'managed_key_unavailable',
  token_failed: 'managed_key_unavailable',
  token_not_found: 'managed_key_unavailable',
};

/** Turns failures of a token into errors for callers. @throws TransitError */
async function withTransitErrors<T>({ name }: ManagedKeyRecord, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof Pkcs11Failure)) throw error;
    throw new TransitError(codes[error.code], `managed key ${name}: ${error.message}`, { cause: error });
  }
}

const notFound = (name: string): TransitError => new TransitError('key_not_found', `managed key ${name} not found`);
const refusal = ({ name }: ManagedKeyRecord, reason: string): TransitError =>
  new TransitError('invalid_request', `managed key ${name}: ${reason}`);
