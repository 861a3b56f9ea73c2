import { isDeepStrictEqual } from 'node:util';
import { type Condition, type Store, type StoredRecord, StoreError } from '@transitd/storage-fsm';
import { keyringPath, rootKeyPath } from '../records/paths.ts';
import { type Keyring, openKeyring, wipeKeyring } from './keyring.ts';
import type { SharedKeyring } from './shared-keyring.ts';
import { decryptValue, termOf } from './value.ts';

/** The keys of an unsealed barrier. Sealing wipes them, so no caller may keep one across an `await`. */
export interface Keys {
  readonly rootKey: Buffer;
  readonly keyring: Keyring;
  /** They hold while the stored keyring is this one. Each commit whose values this keyring encrypts has them. */
  readonly keyringConditions: readonly Condition[];
}

/** The only holder of keys in memory; empty while sealed. */
export class LoadedKeys {
  readonly #store: Store;
  readonly #shared: SharedKeyring;
  readonly #witnessPath: string | undefined;
  #keys: Keys | undefined;

  /** @param witnessPath - as in `BarrierOptions` */
  constructor(store: Store, shared: SharedKeyring, witnessPath: string | undefined) {
    this.#store = store;
    this.#shared = shared;
    this.#witnessPath = witnessPath;
  }

  get loaded(): boolean {
    return this.#keys !== undefined;
  }

  /** @throws StoreError `sealed` */
  get(): Keys {
    if (this.#keys === undefined) throw new StoreError('sealed', 'transitd is sealed');
    return this.#keys;
  }

  /**
   * Takes ownership of the keys in the record `core/keyring` at this revision, and wipes the previous ones. Until the next `reload`, their
   * conditions do not hold if there is a witness.
   */
  installRead(keys: Pick<Keys, 'rootKey' | 'keyring'>, revision: number): void {
    this.#install({ ...keys, keyringConditions: this.#conditions(revision, 0) });
  }

  #install(next: Keys): void {
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
      // The witness first: if another state is received in between, the conditions do not hold, instead of naming its witness with the
      // former keyring.
      const witness = this.#witnessPath === undefined ? undefined : await this.#store.get(this.#witnessPath);
      const record = await this.#store.get(keyringPath);
      const rootKeyRecord = await this.#store.get(rootKeyPath);
      if (this.#keys !== keys) continue; // sealed, or another reload was faster
      const opened = record && openNewer(keys, record, rootKeyRecord);
      if (record === undefined || opened === undefined) return false;
      const keyringConditions = this.#conditions(record.revision, witness?.revision ?? 0);
      if (!isLoaded(opened, keys)) this.#install({ ...opened, keyringConditions });
      else {
        wipeKeyring(opened.keyring);
        if (!isDeepStrictEqual(keyringConditions, keys.keyringConditions)) this.#keys = { ...keys, keyringConditions };
      }
      return true;
    }
  }

  #conditions(revision: number, witness: number): readonly Condition[] {
    const keyring = { path: keyringPath, revision };
    return this.#witnessPath === undefined ? [keyring] : [keyring, { path: this.#witnessPath, revision: witness }];
  }
}

/**
 * Returns whether these keys are the loaded ones. Revisions do not show it: clusters that are promoted at the same position both wrote a
 * keyring at the next one, and a received state may bring the other keyring.
 */
const isLoaded = (next: OpenedKeys, loaded: OpenedKeys): boolean =>
  next.rootKey === loaded.rootKey && next.keyring.encoded.equals(loaded.keyring.encoded);

type OpenedKeys = Omit<Keys, 'keyringConditions'>;

/** Opens a newer keyring with the loaded root key or, after a rekey, with the root key in `core/root-key`, which a loaded term decrypts. */
function openNewer(
  { rootKey, keyring }: OpenedKeys,
  record: StoredRecord,
  rootKeyRecord: StoredRecord | undefined,
): OpenedKeys | undefined {
  const rotated = openKeyring(rootKey, record.value);
  if (rotated !== undefined) return { rootKey, keyring: rotated };
  const term = rootKeyRecord && keyring.terms.get(termOf(rootKeyPath, rootKeyRecord.value));
  if (rootKeyRecord === undefined || term === undefined) return undefined;
  const nextRootKey = decryptValue(term, rootKeyPath, rootKeyRecord.value);
  const rekeyed = openKeyring(nextRootKey, record.value);
  if (rekeyed !== undefined) return { rootKey: nextRootKey, keyring: rekeyed };
  nextRootKey.fill(0);
  return undefined;
}
