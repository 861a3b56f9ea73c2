import type { Store } from '@transitd/storage-fsm';
import { encryptionKeyNotFound, TransitError } from '../errors.ts';
import type { ChangeQueue } from '../keys/change-queue.ts';
import { settingsOf } from '../keys/key.ts';
import type { KeyCache, LoadedKey } from '../keys/key-cache.ts';
import { readKeysConfig } from '../keys/mount-config.ts';
import { newKey } from '../keys/new-version.ts';
import type { Paths } from '../keys/paths.ts';
import { commitAndWipe, wipe } from '../secrets.ts';
import type { BatchReply } from './batch.ts';
import { checkDatakey, type DatakeyRequest, type DatakeyResult, makeDatakey } from './datakey.ts';
import { decryption } from './decrypt.ts';
import { type EncryptItem, encryption } from './encrypt.ts';
import type { KeyedWork } from './keyed-work.ts';
import { perform, type Tools, type Work } from './operation.ts';
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
import { rewrapping } from './rewrap.ts';

/** What encryption shares with the rest of the engine. */
export interface EncryptionParts {
  readonly store: Store;
  readonly paths: Paths;
  readonly keys: KeyCache;
  readonly changes: ChangeQueue;
  readonly tools: Tools;
  readonly work: KeyedWork;
  readonly now: () => number;
}

/** What keeps data secret: encryption and what comes with it. A refusal is a {@link TransitError}. */
export class Encryption {
  readonly #parts: EncryptionParts;

  constructor(parts: EncryptionParts) {
    this.#parts = parts;
  }

  /**
   * Encrypts under an existing key, or makes the key when there is none, the caller may and the mount allows it. A key that is
   * made stays only if something was encrypted with it.
   * @throws TransitError
   */
  async encrypt(name: string, request: EncryptRequest): Promise<EncryptResult | BatchReply<EncryptResult>> {
    const { store, paths, keys } = this.#parts;
    const pending = encryptWork(request);
    const work = pending instanceof Promise ? await pending : pending;
    const key = keys.cached(name) ?? (await keys.key(name));
    if (key !== undefined) return this.#encryptUnder(key, request, work);
    if (!request.mayCreate) throw denied();
    if ((await readKeysConfig(store, paths)).disableUpsert) throw encryptionKeyNotFound();
    return this.#encryptUnderNewKey(name, request, work);
  }

  /** @throws TransitError */
  async decrypt(name: string, request: DecryptRequest): Promise<DecryptResult | BatchReply<DecryptResult>> {
    return this.#parts.work.perform(decryption, name, decryptWork(request), encryptionKeyNotFound);
  }

  /** Encrypts anew, under the latest version if no other is asked for, without showing the plaintext. @throws TransitError */
  async rewrap(name: string, request: RewrapRequest): Promise<EncryptResult | BatchReply<EncryptResult>> {
    return this.#parts.work.perform(rewrapping, name, rewrapWork(request), encryptionKeyNotFound);
  }

  /** A random key for use elsewhere, encrypted under the named one. @throws TransitError */
  async datakey(name: string, request: DatakeyRequest): Promise<DatakeyResult> {
    checkDatakey(request);
    const { tools, work } = this.#parts;
    return work.underKey(name, (key) => makeDatakey(tools, key, request), encryptionKeyNotFound);
  }

  async #encryptUnder({ name }: LoadedKey, request: EncryptRequest, work: Work<EncryptItem>) {
    if (!request.mayUpdate) throw denied();
    return this.#parts.work.perform(encryption, name, work, encryptionKeyNotFound);
  }

  #encryptUnderNewKey(name: string, request: EncryptRequest, work: Work<EncryptItem>) {
    const { store, paths, keys, changes, tools, now } = this.#parts;
    return changes.run(name, async () => {
      const existing = await keys.key(name);
      if (existing !== undefined) return this.#encryptUnder(existing, request, work);
      const { key, transaction } = await newKey(paths, name, settingsOf(upsertSettings(request, work)), now());
      try {
        const reply = await perform(encryption, tools, key, work);
        const nothingDone = 'outcome' in reply && reply.outcome === 'all_failed';
        return nothingDone || (await commitAndWipe(store, transaction)) !== undefined ? reply : undefined;
      } finally {
        wipe(transaction.writes);
      }
    });
  }
}

const denied = (): TransitError => new TransitError('permission_denied', 'permission denied');
