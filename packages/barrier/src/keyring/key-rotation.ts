import type { Store } from '@transitd/storage-fsm';
import { BarrierError } from '../errors.ts';
import { keyringPath, rotationPath } from '../paths.ts';
import { closeKeyring, keyringCommitAttempts, wipeKeyring, withNewTerm } from './keyring.ts';
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
  /** Where the ciphertext lies. */
  readonly store: Store;
  /** The records in clear. */
  readonly clear: Store;
  readonly exclusive: <T>(task: () => Promise<T>) => Promise<T>;
  /** @throws StoreError `sealed` */
  readonly keys: () => Keys;
  /** Brings `keys` up to what the store holds. */
  readonly reload: () => Promise<void>;
  /** The replicated count of values ever written. */
  readonly valuesWritten: () => number;
  /** Whole milliseconds since the epoch. */
  readonly now: () => number;
  /** In force until a configuration is stored. */
  readonly rotation?: RotationConfig;
}

/** The keys under which values are written, one after the other. All of it throws StoreError `sealed` while sealed. */
export class KeyRotation {
  readonly #parts: KeyRotationParts;

  constructor(parts: KeyRotationParts) {
    this.#parts = parts;
  }

  /** Adds a key to the keyring, under which all values are written from now on. @throws BarrierError `conflict`; StoreError */
  rotate(): Promise<void> {
    const { store, exclusive, keys, reload, now, valuesWritten } = this.#parts;
    return exclusive(async () => {
      for (let tries = 0; tries < keyringCommitAttempts; tries += 1) {
        await reload();
        const { rootKey, keyring, keyringRevision } = keys();
        const next = withNewTerm(keyring, { installedMs: now(), valuesAtInstall: valuesWritten() });
        const value = closeKeyring(rootKey, next);
        wipeKeyring(next);
        const conditions = [{ path: keyringPath, revision: keyringRevision }];
        const { outcome } = await store.commit({ conditions, writes: [{ path: keyringPath, value }] });
        if (outcome === 'committed') {
          await reload();
          return;
        }
      }
      throw new BarrierError('conflict', 'the keyring changes too often; try again');
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
    const record = await this.#parts.clear.get(rotationPath);
    return record === undefined ? (this.#parts.rotation ?? defaultRotation) : decodeRotation(record.value);
  }

  /** @throws BarrierError `invalid_rotation_config`; StoreError */
  async setConfig(config: RotationConfig): Promise<void> {
    const value = encodeRotation(checkRotation(config));
    await this.#parts.clear.commit({ conditions: [], writes: [{ path: rotationPath, value }] });
  }

  /** Whether the newest key is due to be replaced. @throws StoreError */
  async isDue(): Promise<boolean> {
    return rotationDue(await this.config(), this.keyStatus(), this.#parts.now());
  }
}
