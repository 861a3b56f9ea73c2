import type { RecordClock } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import type { ChangeQueue } from '../keys/change-queue.ts';
import { type CreateKeyRequest, settingsOf } from '../keys/key.ts';
import type { KeyCache, LoadedKey } from '../keys/key-cache.ts';
import type { KeyConfirmations } from '../keys/key-confirmations.ts';
import { keyType } from '../keys/key-type.ts';
import { readKeysConfig } from '../keys/mount-config.ts';
import { newKey } from '../keys/new-version.ts';
import type { Paths } from '../keys/paths.ts';
import type { UseTally } from '../keys/use-tally.ts';
import { encryptionKeyNotFound, permissionDenied, TransitError } from '../values/errors.ts';
import { commitAndWipe, wipe } from '../values/secrets.ts';
import type { BatchReply } from './batch.ts';
import {
  checkDatakey,
  checkDatakeys,
  type DatakeyRequest,
  type DatakeyResult,
  type DatakeysRequest,
  type DatakeysResult,
  makeDatakey,
  makeDatakeys,
} from './datakey.ts';
import { type DecryptRequest, type DecryptResult, decryptOperation, isText } from './decrypt.ts';
import { type EncryptRequest, type EncryptResult, encryptOperation } from './encrypt.ts';
import { counting, observed, perform, runUnder, type Tools, underKey } from './operation.ts';
import { type RewrapRequest, rewrapOperation } from './rewrap.ts';

/** The parts of the engine that these operations use. */
export interface CiphertextsParts {
  readonly store: Store;
  readonly paths: Paths;
  readonly keys: KeyCache;
  readonly changes: ChangeQueue;
  readonly confirmations: KeyConfirmations;
  readonly tools: Tools;
  readonly clock: RecordClock;
}

/** Makes, opens and renews ciphertexts; makes data keys. Counts that in a tally if there is one. A refusal is a {@link TransitError}. */
export class Ciphertexts {
  readonly #parts: CiphertextsParts;

  constructor(parts: CiphertextsParts) {
    this.#parts = parts;
  }

  /**
   * Encrypts under an existing key, or creates the key if the caller may and the mount allows it. A created key is stored only if
   * at least one item was encrypted.
   * @throws TransitError
   */
  async encrypt(name: string, request: EncryptRequest, tally?: UseTally): Promise<EncryptResult | BatchReply<EncryptResult>> {
    const { store, paths, keys } = this.#parts;
    encryptOperation.shared(request);
    const key = keys.cached(name) ?? (await keys.key(name));
    if (key !== undefined) return this.#encryptUnderExistingKey(name, request, tally);
    if (!request.mayCreate) throw permissionDenied('capabilities.create');
    if ((await readKeysConfig(store, paths)).disableUpsert) throw encryptionKeyNotFound();
    return this.#encryptUnderNewKey(name, request, tally);
  }

  /** @throws TransitError */
  decrypt(name: string, request: DecryptRequest, tally?: UseTally): Promise<DecryptResult | BatchReply<DecryptResult>> {
    return perform(decryptOperation, counting(this.#parts.tools, tally), name, request, encryptionKeyNotFound);
  }

  /** Encrypts a ciphertext's plaintext again, under the latest version by default, without revealing it. @throws TransitError */
  rewrap(name: string, request: RewrapRequest, tally?: UseTally): Promise<EncryptResult | BatchReply<EncryptResult>> {
    return perform(rewrapOperation, counting(this.#parts.tools, tally), name, request, encryptionKeyNotFound);
  }

  /** Returns a random key for use elsewhere, encrypted under the named one. @throws TransitError */
  async datakey(name: string, request: DatakeyRequest, tally?: UseTally): Promise<DatakeyResult> {
    checkDatakey(request);
    const tools = counting(this.#parts.tools, tally);
    return underKey(tools, name, (key) => observed(tools, 1, () => makeDatakey(tools, key, request)), encryptionKeyNotFound);
  }

  /** Returns several data keys, all encrypted under one version of the key. @throws TransitError */
  async datakeys(name: string, request: DatakeysRequest, tally?: UseTally): Promise<DatakeysResult> {
    const count = checkDatakeys(request);
    const tools = counting(this.#parts.tools, tally);
    const make = (key: LoadedKey) => observed(tools, count, () => makeDatakeys(tools, key, { ...request, count }));
    return underKey(tools, name, make, encryptionKeyNotFound);
  }

  #encryptUnderExistingKey(name: string, request: EncryptRequest, tally: UseTally | undefined) {
    if (!request.mayUpdate) throw permissionDenied('capabilities.update');
    const tools = counting(this.#parts.tools, tally);
    return underKey(tools, name, (key) => runUnder(encryptOperation, tools, key, request, undefined), encryptionKeyNotFound);
  }

  async #encryptUnderNewKey(name: string, request: EncryptRequest, tally: UseTally | undefined) {
    const { changes, confirmations } = this.#parts;
    // Without a confirmation, the ciphertext is dropped: a promotion could lose its key.
    const { made } = await confirmations.making(name, (isHeld) =>
      changes.run(name, () => this.#encryptAndStore(name, request, isHeld, tally)),
    );
    return made;
  }

  /** Returns undefined if the key could not be stored because something changed in the meantime. */
  async #encryptAndStore(name: string, request: EncryptRequest, isHeld: boolean, tally: UseTally | undefined) {
    const { store, paths, keys, clock } = this.#parts;
    const tools = counting(this.#parts.tools, tally);
    if ((await keys.key(name)) !== undefined) return this.#encryptUnderExistingKey(name, request, tally);
    const { key, transaction } = await newKey(paths, name, settingsOf(upsertSettings(request)), clock.dueMs(), {
      forUse: true,
      isHeld,
      observer: tools.observer,
    });
    tally?.begin(key);
    try {
      const reply = await runUnder(encryptOperation, tools, key, request, undefined);
      keys.assertOpen();
      const nothingDone = 'outcome' in reply && reply.outcome === 'all_failed';
      return nothingDone || (await commitAndWipe(store, transaction)) !== undefined ? reply : undefined;
    } finally {
      wipe(transaction.writes);
    }
  }
}

/**
 * Returns the settings of a key that an encryption creates. The key is derived exactly when the first item has a context.
 * @throws TransitError `invalid_request`
 */
function upsertSettings({ type, convergentEncryption, context, items }: EncryptRequest): CreateKeyRequest {
  const derived = isText(items === undefined ? context : items[0]?.context);
  if (type !== undefined && !keyType(type).supportsEncryption) {
    throw new TransitError('invalid_request', `key type ${type} not supported for this operation`);
  }
  if (convergentEncryption === true && !derived) {
    const refusal = 'convergent encryption requires derivation to be enabled, so context is required';
    throw new TransitError('invalid_request', refusal);
  }
  return { type, derived, convergentEncryption };
}
