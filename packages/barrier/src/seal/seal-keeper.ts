import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Store, untilCommitted } from '@transitd/storage-fsm';
import { closeKeyring, keyringConflict } from '../keyring/keyring.ts';
import type { Keys } from '../keyring/loaded-keys.ts';
import { encryptValue } from '../keyring/value.ts';
import { keyBytes } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';
import { keyringPath, recoverySharesPath, rootKeyPath, sealPath, unsealKeyPath } from '../records/paths.ts';
import { readCore, type StoredSeal } from './core-records.ts';
import { notOwnRecord, requireOwnRecord } from './own-record.ts';
import { closeRecoveryShares } from './recovery-shares.ts';
import { newWrappingKey, sealWrites, staticKey, unwrapByShares } from './root-key-wrapping.ts';
import {
  hasProvider,
  idOf,
  isSameSeal,
  type OnSealWritten,
  type SealConfig,
  type SealId,
  type ShareCounts,
  sealOf,
} from './seal-config.ts';
import type { SealRecord, SealTerms } from './seal-record.ts';
import type { ShareCollection } from './shares.ts';
import { openUnsealKey } from './unseal-key.ts';

/** A seal that replaces that of the record at `revision`. */
export interface Replacement {
  /** The seal to put in force. */
  readonly to: SealId;
  readonly counts: ShareCounts;
  readonly shareHashes: readonly Buffer[];
  /** The key of the shares; only a Shamir seal uses it. */
  readonly sharedKey: Uint8Array;
  readonly revision: number;
}

export interface SealKeeperOptions {
  readonly store: Store;
  readonly seal: SealConfig;
  /** @throws StoreError `sealed` */
  readonly keys: () => Keys;
  /** Updates `keys` to the keyring in the store. */
  readonly reload: () => Promise<void>;
  /** Loads a committed change. Must not fail when the store fails, otherwise the only copy of the new shares would be lost. */
  readonly loadCommitted: () => Promise<void>;
  readonly onSealWritten?: OnSealWritten;
}

/** All operations that change the seal's record once it exists, or need its key. They throw StoreError `sealed` while sealed. */
export class SealKeeper {
  readonly #options: SealKeeperOptions;

  constructor(options: SealKeeperOptions) {
    this.#options = options;
  }

  async current(): Promise<StoredSeal> {
    const { keys, store } = this.#options;
    keys();
    const { seal } = await readCore(store);
    keys();
    return seal;
  }

  /**
   * Verifies that the complete shares combine to the seal's key and unwrap the current root key or, for recovery shares, that the record
   * with their hashes is this cluster's.
   * @throws BarrierError `barrier_corrupt`, `conflict`, `seal_mismatch`
   */
  async verifyShares(stored: StoredSeal, shares: ShareCollection): Promise<void> {
    const { record } = stored;
    if (record.type !== 'shamir') return this.verifyRecord(stored);
    const { keys, reload } = this.#options;
    await reload();
    keys();
    const unwrapped = await unwrapByShares(record, shares);
    try {
      if (!timingSafeEqual(unwrapped, keys().rootKey)) throw notOwnRecord();
    } finally {
      unwrapped.fill(0);
    }
  }

  /**
   * Verifies that the record is this cluster's ({@link requireOwnRecord}).
   * @param opened - SHA-256 of the root key that the shares of a Shamir seal have opened
   * @throws BarrierError `barrier_corrupt`, `conflict`, `seal_mismatch`
   */
  async verifyRecord(stored: StoredSeal, opened?: Uint8Array): Promise<void> {
    const { reload, keys } = this.#options;
    await reload();
    if (opened === undefined) {
      if (!(await requireOwnRecord(stored, this.#options))) throw sealChanged();
    } else if (!timingSafeEqual(opened, createHash('sha256').update(keys().rootKey).digest())) throw notOwnRecord();
  }

  /**
   * Writes, in one transaction, a new root key wrapped by the new seal, the keyring under that root key, and the root key for the nodes
   * that are already unsealed. With recovery shares, also the record of them, for clusters that replicate this one. `conflict`: another
   * node has replaced the seal's record.
   * @throws ProviderError: nothing has changed
   */
  async replace({ to, counts, shareHashes, sharedKey, revision }: Replacement): Promise<'committed' | 'conflict'> {
    const { keys, reload, seal, loadCommitted, store } = this.#options;
    const wrapping = await newWrappingKey(sealOf(seal, to), sharedKey);
    try {
      return await untilCommitted(async () => {
        await reload();
        const { keyring, keyringConditions } = keys();
        const rootKey = randomBytes(keyBytes);
        const writes = [
          ...sealWrites({ counts, shareHashes, wrapping, rootKey }, keyring.newest),
          { path: keyringPath, value: closeKeyring(rootKey, keyring) },
          { path: rootKeyPath, value: encryptValue(keyring.newest, rootKeyPath, rootKey) },
          ...(to.type === 'shamir'
            ? []
            : [{ path: recoverySharesPath, value: closeRecoveryShares(keyring.newest, { counts, shareHashes }) }]),
        ];
        rootKey.fill(0);
        const conditions = [{ path: sealPath, revision }, ...keyringConditions];
        const { outcome } = await store.commit({ conditions, writes });
        if (outcome === 'committed') {
          await loadCommitted();
          return 'committed';
        }
        return (await store.get(sealPath))?.revision === revision ? undefined : 'conflict';
      }, keyringConflict);
    } finally {
      wrapping.key.fill(0);
    }
  }

  /**
   * Returns the seal's terms with the key that wraps the root key; the caller wipes the key.
   * @throws BarrierError `unseal_key_not_kept`, `seal_mismatch`, `barrier_corrupt`
   */
  async sealKey(): Promise<{ readonly terms: SealTerms; readonly key: Buffer }> {
    const { keys, reload, seal, store } = this.#options;
    for (;;) {
      await reload();
      const { record, revision } = await this.current();
      const { wrappedRootKey: _, ...terms } = record;
      if (record.type === 'static') return { terms, key: Buffer.from(staticKey(sealOf(seal, record), record.keyId).key) };
      const kept = await store.get(unsealKeyPath);
      const key = kept && openUnsealKey(keys().keyring, record, kept.value);
      if (key !== undefined) return { terms, key };
      if ((await this.current()).revision === revision)
        throw new BarrierError(
          'unseal_key_not_kept',
          'no node can join yet: this seal was created by a release that did not store the unseal key; do a rekey (sys/rotate/root) first',
        );
    }
  }

  /**
   * Rewraps the root key if the present seal key does not wrap it: after a new static key was configured, or once the provider has used a
   * newer version of its key. Returns true if it did.
   * @throws BarrierError `barrier_corrupt`, `seal_mismatch`; ProviderError
   */
  async rewrap(): Promise<boolean> {
    const { keys, reload, seal, store } = this.#options;
    const { record, revision } = await this.current();
    if (!isSameSeal(record, idOf(seal)) || isWrappedByPresentKey(seal, record)) return false;
    const wrapping = await newWrappingKey(seal, nothing);
    try {
      if (wrapping.keyId === record.keyId) return false;
      await reload();
      // The terms of another writer must not become this cluster's by being wrapped again.
      if (!(await requireOwnRecord({ record, revision }, this.#options))) return false;
      const { rootKey, keyring, keyringConditions } = keys();
      const { shares, threshold, shareHashes } = record;
      const writes = sealWrites({ counts: { shares, threshold }, shareHashes, wrapping, rootKey }, keyring.newest);
      const conditions = [{ path: sealPath, revision }, ...keyringConditions];
      const committed = (await store.commit({ conditions, writes })).outcome === 'committed';
      if (committed) this.#options.onSealWritten?.('rewrapped');
      return committed;
    } finally {
      wrapping.key.fill(0);
    }
  }
}

const sealChanged = (): BarrierError => new BarrierError('conflict', 'the seal has changed in the meantime; try again');

/** In place of the key of new shares: the shares stay, and only a Shamir seal would need their key. */
const nothing = new Uint8Array(0);

function isWrappedByPresentKey(seal: SealConfig, { keyId }: SealRecord): boolean {
  if (hasProvider(seal)) return seal.provider.keyId === undefined || seal.provider.keyId === keyId;
  return seal.type === 'shamir' || seal.current.id === keyId;
}
