import { type Store, type StoredRecord, StoreError } from '@transitd/storage-fsm';
import { keyringPath, rootKeyPath } from '../records/paths.ts';
import { type Keyring, openKeyring, wipeKeyring } from './keyring.ts';
import type { SharedKeyring } from './shared-keyring.ts';
import { decryptValue, termOf } from './value.ts';

/** The keys of an unsealed barrier. Sealing wipes them, so no caller may keep one across an `await`. */
export interface Keys {
  readonly rootKey: Buffer;
  readonly keyring: Keyring;
  /** Revision of the record `core/keyring` that holds this keyring. */
  readonly keyringRevision: number;
}

/** The only holder of keys in memory; empty while sealed. */
export class LoadedKeys {
  readonly #store: Store;
  readonly #shared: SharedKeyring;
  #keys: Keys | undefined;

  constructor(store: Store, shared: SharedKeyring) {
    this.#store = store;
    this.#shared = shared;
  }

  get loaded(): boolean {
    return this.#keys !== undefined;
  }

  /** @throws StoreError `sealed` */
  get(): Keys {
    if (this.#keys === undefined) throw new StoreError('sealed', 'transitd is sealed');
    return this.#keys;
  }

  /** Takes ownership of these keys and wipes the previous ones. */
  install(next: Keys): void {
    const before = this.#keys;
    this.#keys = next;
    this.#shared.install(next.keyring);
    if (before === undefined) return;
    wipeKeyring(before.keyring);
    if (before.rootKey !== next.rootKey) before.rootKey.fill(0);
  }

  wipe(): void {
    if (this.#keys === undefined) return;
    this.#shared.wipe();
    this.#keys.rootKey.fill(0);
    wipeKeyring(this.#keys.keyring);
    this.#keys = undefined;
  }

  /**
   * Loads the keyring from the store if it differs from the loaded one; does nothing while sealed.
   * @returns false if the loaded keys do not open it; nothing has changed then
   * @throws BarrierError `barrier_corrupt`; StoreError
   */
  async reload(): Promise<boolean> {
    for (;;) {
      const keys = this.#keys;
      if (keys === undefined) return true;
      const record = await this.#store.get(keyringPath);
      const rootKeyRecord = await this.#store.get(rootKeyPath);
      if (this.#keys !== keys) continue; // sealed, or another reload was faster
      const next = record && openNewer(keys, record, rootKeyRecord);
      if (next === undefined) return false;
      if (isLoaded(next, keys)) wipeKeyring(next.keyring);
      else this.install(next);
      return true;
    }
  }
}

/**
 * Returns whether these keys are the loaded ones. The revision alone does not show it: clusters that are promoted at the same position both
 * wrote a keyring at the next one, and a received state may bring the other keyring.
 */
const isLoaded = (next: Keys, loaded: Keys): boolean =>
  next.rootKey === loaded.rootKey &&
  next.keyringRevision === loaded.keyringRevision &&
  next.keyring.encoded.equals(loaded.keyring.encoded);

/** Opens a newer keyring with the loaded root key or, after a rekey, with the root key in `core/root-key`, which a loaded term decrypts. */
function openNewer({ rootKey, keyring }: Keys, record: StoredRecord, rootKeyRecord: StoredRecord | undefined): Keys | undefined {
  const keyringRevision = record.revision;
  const rotated = openKeyring(rootKey, record.value);
  if (rotated !== undefined) return { rootKey, keyring: rotated, keyringRevision };
  const term = rootKeyRecord && keyring.terms.get(termOf(rootKeyPath, rootKeyRecord.value));
  if (rootKeyRecord === undefined || term === undefined) return undefined;
  const nextRootKey = decryptValue(term, rootKeyPath, rootKeyRecord.value);
  const rekeyed = openKeyring(nextRootKey, record.value);
  if (rekeyed !== undefined) return { rootKey: nextRootKey, keyring: rekeyed, keyringRevision };
  nextRootKey.fill(0);
  return undefined;
}
