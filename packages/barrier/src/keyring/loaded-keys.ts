import { type Store, type StoredRecord, StoreError } from '@transitd/storage-fsm';
import { keyringPath, rootKeyPath } from '../paths.ts';
import { type Keyring, openKeyring, wipeKeyring } from './keyring.ts';
import { decryptValue, termOf } from './value.ts';

/** The keys of an unsealed barrier. They are wiped when it seals, so nobody keeps one over an `await`. */
export interface Keys {
  readonly rootKey: Buffer;
  readonly keyring: Keyring;
  /** Of the record `core/keyring` that this keyring came from. */
  readonly keyringRevision: number;
}

/** The one place that holds keys in memory: none while sealed. */
export class LoadedKeys {
  readonly #store: Store;
  #keys: Keys | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  get loaded(): boolean {
    return this.#keys !== undefined;
  }

  /** @throws StoreError `sealed` */
  get(): Keys {
    if (this.#keys === undefined) throw new StoreError('sealed', 'transitd is sealed');
    return this.#keys;
  }

  /** Owns these keys from now on; those before are wiped. */
  install(next: Keys): void {
    const before = this.#keys;
    this.#keys = next;
    if (before === undefined) return;
    wipeKeyring(before.keyring);
    if (before.rootKey !== next.rootKey) before.rootKey.fill(0);
  }

  wipe(): void {
    if (this.#keys === undefined) return;
    this.#keys.rootKey.fill(0);
    wipeKeyring(this.#keys.keyring);
    this.#keys = undefined;
  }

  /**
   * Loads the keyring that is in the store now, if it is another one than the loaded one; does nothing while sealed.
   * @returns false when these keys do not open it, and then nothing has changed
   * @throws BarrierError `barrier_corrupt`; StoreError
   */
  async reload(): Promise<boolean> {
    for (;;) {
      const keys = this.#keys;
      if (keys === undefined) return true;
      const record = await this.#store.get(keyringPath);
      const handover = await this.#store.get(rootKeyPath);
      if (this.#keys !== keys) continue; // sealed, or another reload was faster
      if (record?.revision === keys.keyringRevision) return true;
      const next = record && openNewer(keys, record, handover);
      if (next === undefined) return false;
      this.install(next);
      return true;
    }
  }
}

/** By the root key that is loaded or, after a rekey, by the one handed over under a term that is loaded. */
function openNewer({ rootKey, keyring }: Keys, record: StoredRecord, handover: StoredRecord | undefined): Keys | undefined {
  const keyringRevision = record.revision;
  const rotated = openKeyring(rootKey, record.value);
  if (rotated !== undefined) return { rootKey, keyring: rotated, keyringRevision };
  const term = handover && keyring.terms.get(termOf(rootKeyPath, handover.value));
  if (handover === undefined || term === undefined) return undefined;
  const nextRootKey = decryptValue(term, rootKeyPath, handover.value);
  const rekeyed = openKeyring(nextRootKey, record.value);
  if (rekeyed !== undefined) return { rootKey: nextRootKey, keyring: rekeyed, keyringRevision };
  nextRootKey.fill(0);
  return undefined;
}
