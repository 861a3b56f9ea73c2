import { randomBytes } from 'node:crypto';
import type { Store, Transaction } from '@transitd/storage-fsm';
import type { BatchReply } from './batch.ts';
import { ChangeQueue } from './change-queue.ts';
import { encryptionKeyNotFound, TransitError } from './errors.ts';
import {
  type ConfigureKeyRequest,
  type CreateKeyRequest,
  configureKey,
  createKey,
  creationWarnings,
  deleteKey,
  type FreshVersion,
  type KeyChange,
  rotateKey,
  type StoredKey,
  settingsOf,
  trimKey,
} from './key.ts';
import { handleOf, KeyCache, type LoadedKey, loadedKey, VersionGone } from './key-cache.ts';
import { type ListRequest, listKeys } from './key-list.ts';
import type { KeyRecord } from './key-record.ts';
import type { KeyType } from './key-type.ts';
import { type KeyView, keyView, visibleVersions } from './key-view.ts';
import { type KeysConfig, readKeysConfig, writeKeysConfig } from './keys-config.ts';
import { NoncePool } from './nonce-pool.ts';
import { decryption } from './operations/decrypt.ts';
import { type EncryptItem, encryption } from './operations/encrypt.ts';
import { type Item, type Operation, perform, type Tools, type Work } from './operations/operation.ts';
import { rewrapping } from './operations/rewrap.ts';
import { isKeyName, type Paths, pathsOf } from './paths.ts';
import {
  type DecryptRequest,
  type DecryptResult,
  decryptWork,
  type EncryptRequest,
  type EncryptResult,
  encryptWork,
  type RewrapRequest,
  rewrapWork,
  upsertSettings,
} from './requests.ts';
import { sweepVersions } from './sweep.ts';
import { wipe } from './version-record.ts';

export interface TransitEngineOptions {
  /** Shows plaintext records; what lies below encrypts them. */
  readonly store: Store;
  /** The mount's own id, part of every path. */
  readonly mountId: string;
  /** First part of every ciphertext string, `svc` when absent. */
  readonly ciphertextPrefix?: string;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Decoded keys kept at most; 0, as when absent, sets no number. */
  readonly cacheSize?: number;
  /** Bytes that decoded keys take at most, about; 64 MiB when absent. */
  readonly cacheBytesMax?: number;
}

/** A key after a change that succeeded, and what its caller should know. */
export interface KeyAnswer {
  readonly key: KeyView;
  readonly warnings: readonly string[];
}

const keyIdBytes = 16;
const hmacSecretBytes = 32;
const cacheBytesDefault = 64 * 1024 * 1024;
/** An operation whose key loses a version on the way starts over with the key as it is then, this often at most. */
const attemptsMax = 5;

/**
 * One mount's named keys and what is done with them. Every change is one conditional transaction made from the records as they
 * are, so it happens as a whole or not at all. A refusal is a {@link TransitError}; what the store throws passes through.
 */
export class TransitEngine {
  readonly #store: Store;
  readonly #paths: Paths;
  readonly #now: () => number;
  readonly #keys: KeyCache;
  readonly #tools: Tools;
  readonly #changes = new ChangeQueue();
  #sweepCursor = '';

  constructor({
    store,
    mountId,
    ciphertextPrefix = 'svc',
    now,
    cacheSize = 0,
    cacheBytesMax = cacheBytesDefault,
  }: TransitEngineOptions) {
    this.#store = store;
    this.#paths = pathsOf(mountId);
    this.#now = now;
    this.#keys = new KeyCache(store, this.#paths, { entries: cacheSize, bytes: cacheBytesMax });
    this.#tools = { keys: this.#keys, nonces: new NoncePool(), prefix: ciphertextPrefix };
  }

  /**
   * Ends the watch and forgets every key. Operations on data that are under way end with StoreError `sealed`. Nothing is to be
   * asked of the engine afterwards.
   */
  close(): void {
    this.#keys.close();
  }

  /** Whether there is a key of that name, which decides between the capabilities create and update. */
  async keyExists(name: string): Promise<boolean> {
    return (this.#keys.cached(name) ?? (await this.#keys.key(name))) !== undefined;
  }

  /** The revision of the key if it is at hand: while it stays, so does everything made from it. */
  cachedRevision(name: string): number | undefined {
    return this.#keys.cached(name)?.revision;
  }

  /** Makes a key; one of that name that exists already is the answer as it is. @throws TransitError `invalid_request` */
  async createKey(name: string, request: CreateKeyRequest): Promise<KeyAnswer> {
    const settings = settingsOf(request);
    return this.#changes.run(name, async () => {
      const existing = await this.#keys.key(name);
      if (existing !== undefined) return { key: await this.#view(existing), warnings: creationWarnings(existing, request) };
      const { key, transaction, createdMs } = this.#newKey(name, settings);
      try {
        const revision = await this.#commit(transaction);
        if (revision === undefined) return undefined;
        return { key: keyView({ ...key, revision }, [{ version: 1, createdMs }]), warnings: [] };
      } finally {
        wipe(transaction.writes);
      }
    });
  }

  /** @throws TransitError `not_found` */
  async readKey(name: string): Promise<KeyView> {
    const key = await this.#keys.key(name);
    if (key === undefined) throw new TransitError('not_found', 'no such key');
    return this.#view(key);
  }

  /** Names in ascending byte order. @throws TransitError `not_found` when there is none to show */
  listKeys(request: ListRequest = {}): Promise<string[]> {
    return listKeys(this.#store, this.#paths, request);
  }

  /** @throws TransitError `key_not_found`, `deletion_not_allowed` */
  async deleteKey(name: string): Promise<void> {
    await this.#changes.run(name, async () => {
      const key = await this.#keys.key(name);
      if (key === undefined) {
        throw new TransitError('key_not_found', `error deleting policy ${name}: could not delete key; not found`);
      }
      return this.#commit(deleteKey(this.#paths, key));
    });
  }

  /** @throws TransitError `key_not_found`, `invalid_request` */
  configureKey(name: string, request: ConfigureKeyRequest): Promise<KeyAnswer> {
    return this.#change(name, `no existing key named ${name} could be found`, (key) => configureKey(this.#paths, key, request));
  }

  /** @throws TransitError `key_not_found` */
  rotateKey(name: string): Promise<KeyAnswer> {
    return this.#change(name, 'key not found', (key) =>
      this.#withFreshVersion(key.type, (fresh) => rotateKey(this.#paths, key, fresh)),
    );
  }

  /** @throws TransitError `key_not_found`, `invalid_request` */
  trimKey(name: string, { minAvailableVersion }: { readonly minAvailableVersion?: number | undefined }): Promise<KeyAnswer> {
    return this.#change(name, 'invalid key name', (key) => trimKey(this.#paths, key, minAvailableVersion));
  }

  /**
   * Encrypts under an existing key, or makes the key when there is none, the caller may and the mount allows it. A key that is
   * made stays only if something was encrypted with it.
   * @throws TransitError
   */
  async encrypt(name: string, request: EncryptRequest): Promise<EncryptResult | BatchReply<EncryptResult>> {
    const work = encryptWork(request);
    const key = this.#keys.cached(name) ?? (await this.#keys.key(name));
    if (key !== undefined) return this.#encryptUnder(key, request, work);
    if (!request.mayCreate) throw denied();
    if ((await this.readKeysConfig()).disableUpsert) throw encryptionKeyNotFound();
    return this.#encryptUnderNewKey(name, request, work);
  }

  /** @throws TransitError */
  async decrypt(name: string, request: DecryptRequest): Promise<DecryptResult | BatchReply<DecryptResult>> {
    return this.#perform(decryption, name, decryptWork(request));
  }

  /** Encrypts anew, under the latest version if no other is asked for, without showing the plaintext. @throws TransitError */
  async rewrap(name: string, request: RewrapRequest): Promise<EncryptResult | BatchReply<EncryptResult>> {
    return this.#perform(rewrapping, name, rewrapWork(request));
  }

  readKeysConfig(): Promise<KeysConfig> {
    return readKeysConfig(this.#store, this.#paths);
  }

  async writeKeysConfig(config: KeysConfig): Promise<KeysConfig> {
    await writeKeysConfig(this.#store, this.#paths, config);
    return config;
  }

  /**
   * Goes on with clearing version records that no key can reach; see {@link sweepVersions}. Each call does at most about `limit`
   * records' work. @returns whether the end was reached, and how many records were deleted
   */
  async sweep(limit: number): Promise<{ readonly removed: number; readonly finished: boolean }> {
    const { cursor, removed, finished } = await sweepVersions(this.#store, this.#paths, this.#sweepCursor, limit);
    this.#sweepCursor = cursor;
    return { removed, finished };
  }

  async #perform<I extends Item, R>(operation: Operation<I, R>, name: string, work: Work<I>): Promise<R | BatchReply<R>> {
    for (let attempt = 1; ; attempt++) {
      const key = this.#keys.cached(name) ?? (await this.#keys.key(name));
      if (key === undefined) throw encryptionKeyNotFound();
      try {
        return await perform(operation, this.#tools, key, work);
      } catch (error) {
        if (!(error instanceof VersionGone) || attempt === attemptsMax) throw error;
      }
    }
  }

  async #encryptUnder({ name }: LoadedKey, request: EncryptRequest, work: Work<EncryptItem>) {
    if (!request.mayUpdate) throw denied();
    return this.#perform(encryption, name, work);
  }

  #encryptUnderNewKey(name: string, request: EncryptRequest, work: Work<EncryptItem>) {
    return this.#changes.run(name, async () => {
      const existing = await this.#keys.key(name);
      if (existing !== undefined) return this.#encryptUnder(existing, request, work);
      const { key, transaction } = this.#newKey(name, settingsOf(upsertSettings(request, work)));
      try {
        const reply = await perform(encryption, this.#tools, key, work);
        const nothingDone = 'outcome' in reply && reply.outcome === 'all_failed';
        return nothingDone || (await this.#commit(transaction)) !== undefined ? reply : undefined;
      } finally {
        wipe(transaction.writes);
      }
    });
  }

  #change(name: string, missing: string, change: (key: LoadedKey) => KeyChange): Promise<KeyAnswer> {
    return this.#changes.run(name, async () => {
      const key = await this.#keys.key(name);
      if (key === undefined) throw new TransitError('key_not_found', missing);
      const { record, newVersion, transaction, warnings } = change(key);
      try {
        // Nothing is read after the commit: a change that is in force is answered, even if the node seals at that moment.
        const versions = await visibleVersions(this.#store, this.#paths, record);
        if (newVersion !== undefined) versions.push(newVersion);
        const revision = transaction === undefined ? key.revision : await this.#commit(transaction);
        if (revision === undefined) return undefined;
        return { key: keyView({ name, record, revision }, versions), warnings };
      } finally {
        wipe(transaction?.writes ?? []);
      }
    });
  }

  /** The index of the log entry, or undefined on a conflict. */
  async #commit(transaction: Transaction): Promise<number | undefined> {
    const { outcome, index } = await this.#store.commit(transaction);
    return outcome === 'committed' ? index : undefined;
  }

  /** A key that is not stored yet, ready for use, and what stores it. */
  #newKey(name: string, settings: Omit<KeyRecord, 'id'>): { key: LoadedKey; transaction: Transaction; createdMs: number } {
    if (!isKeyName(name)) throw new TransitError('invalid_request', 'invalid key name');
    const key = loadedKey(name, { id: randomBytes(keyIdBytes).toString('hex'), ...settings }, 0);
    return this.#withFreshVersion(key.type, (fresh) => {
      key.versions.set(key.record.latestVersion, handleOf(key, fresh.material));
      return { key, transaction: createKey(this.#paths, name, key.record, fresh), createdMs: fresh.createdMs };
    });
  }

  /** Draws what a new version needs, and wipes it after use. */
  #withFreshVersion<T>({ materialBytes }: KeyType, use: (fresh: FreshVersion) => T): T {
    const [material, hmacSecret] = [randomBytes(materialBytes), randomBytes(hmacSecretBytes)];
    try {
      return use({ material, hmacSecret, createdMs: this.#now() });
    } finally {
      material.fill(0);
      hmacSecret.fill(0);
    }
  }

  async #view(key: StoredKey): Promise<KeyView> {
    return keyView(key, await visibleVersions(this.#store, this.#paths, key.record));
  }
}

const denied = (): TransitError => new TransitError('permission_denied', 'permission denied');
