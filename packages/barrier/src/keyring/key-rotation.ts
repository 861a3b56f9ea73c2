import type { RecordClock } from '@transitd/process';
import { changeRecords, type Store } from '@transitd/storage-fsm';
import { keyringPath, rotationPath } from '../records/paths.ts';
import { closeKeyring, keyringConflict, wipeKeyring, withNewTerm } from './keyring.ts';
import type { Keys } from './loaded-keys.ts';
import {
  checkRotation,
  decodeRotation,
  defaultRotation,
  encodeRotation,
  type KeyStatus,
  type RotationConfig,
  rotationDue,
} from './rotation.ts';

export interface KeyRotationParts {
  /** The store with the encrypted records. */
  readonly store: Store;
  /** The records in plaintext. */
  readonly plaintext: Store;
  readonly exclusive: <T>(task: () => Promise<T>) => Promise<T>;
  /** @throws StoreError `sealed` */
  readonly keys: () => Keys;
  /** Updates `keys` to the keyring in the store. */
  readonly reload: () => Promise<void>;
  /** Returns the replicated count of values ever written. */
  readonly valuesWritten: () => number;
  readonly clock: RecordClock;
  /** The rotation configuration that applies until one is stored. */
  readonly rotation?: RotationConfig;
}

/** Rotates the key that encrypts values. All methods throw StoreError `sealed` while sealed. */
export class KeyRotation {
  readonly #parts: KeyRotationParts;

  constructor(parts: KeyRotationParts) {
    this.#parts = parts;
  }

  /** Adds a key to the keyring. All later values are encrypted under the new key. @throws BarrierError `conflict`; StoreError */
  rotate(): Promise<void> {
    const { store, exclusive, keys, reload, clock, valuesWritten } = this.#parts;
    return exclusive(async () => {
      const next = async () => {
        await reload();
        const { rootKey, keyring, keyringConditions: conditions } = keys();
        const renewed = withNewTerm(keyring, { installedMs: clock.dueMs(), valuesAtInstall: valuesWritten() });
        const value = closeKeyring(rootKey, renewed);
        wipeKeyring(renewed);
        return { conditions, writes: [{ path: keyringPath, value }] };
      };
      await changeRecords(store, next, keyringConflict);
      await reload();
    });
  }

  keyStatus(): KeyStatus {
    const { keys, valuesWritten } = this.#parts;
    const { term, installedMs, valuesAtInstall } = keys().keyring.newest;
    const encryptions = Math.max(0, valuesWritten() - valuesAtInstall);
    return { term, installTime: new Date(installedMs), encryptions };
  }

  /** @throws StoreError */
  async config(): Promise<RotationConfig> {
    const record = await this.#parts.plaintext.get(rotationPath);
    return record === undefined ? (this.#parts.rotation ?? defaultRotation) : decodeRotation(record.value);
  }

  /** @throws BarrierError `invalid_rotation_config`; StoreError */
  async setConfig(config: RotationConfig): Promise<void> {
    const value = encodeRotation(checkRotation(config));
    await this.#parts.plaintext.commit({ conditions: [], writes: [{ path: rotationPath, value }] });
  }

  /** Returns whether a rotation is due. @throws StoreError */
  async isDue(): Promise<boolean> {
    return rotationDue(await this.config(), this.keyStatus(), this.#parts.clock.dueMs());
  }
}
