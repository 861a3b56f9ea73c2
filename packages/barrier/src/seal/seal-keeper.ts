import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Store } from '@transitd/storage-fsm';
import { closeKeyring, keyringCommitAttempts } from '../keyring/keyring.ts';
import type { Keys } from '../keyring/loaded-keys.ts';
import { encryptValue } from '../keyring/value.ts';
import { keyBytes } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';
import { keyringPath, rootKeyPath, sealPath, unsealKeyPath } from '../records/paths.ts';
import { readCore, type StoredSeal } from './core-records.ts';
import { staticKey, unwrapByShares, unwrapByStaticKey, wrapRootKey } from './root-key-wrapping.ts';
import type { SealConfig, ShareCounts } from './seal-config.ts';
import { closeSeal, type SealRecord, type SealTerms } from './seal-record.ts';
import type { ShareCollection, SharedKey } from './shares.ts';
import { openUnsealKey, unsealKeyWrites } from './unseal-key.ts';

/** New shares that replace those of the seal's record at `revision`. */
export interface Replacement {
  readonly counts: ShareCounts;
  readonly shared: SharedKey;
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

  /** Verifies that the complete shares combine to the seal's key and unwrap the current root key. @throws BarrierError `barrier_corrupt` */
  async verifyShares(record: SealRecord, shares: ShareCollection): Promise<void> {
    const { keys, reload } = this.#options;
    await reload();
    keys();
    if (record.type === 'static') return; // recovery shares wrap nothing: their hashes in the record are the proof
    const unwrapped = await unwrapByShares(record, shares);
    try {
      if (!timingSafeEqual(unwrapped, keys().rootKey))
        throw new BarrierError('barrier_corrupt', `the record ${sealPath} holds a different root key`);
    } finally {
      unwrapped.fill(0);
    }
  }

  /**
   * Writes, in one transaction, a new root key wrapped for the new shares, the keyring under that root key, and the root key for the nodes
   * that are already unsealed. `conflict`: another node has replaced the seal's record.
   */
  async replace({ counts, shared, revision }: Replacement): Promise<'committed' | 'conflict'> {
    const { keys, reload, seal, loadCommitted, store } = this.#options;
    for (let tries = 0; tries < keyringCommitAttempts; tries += 1) {
      await reload();
      const { keyring, keyringRevision } = keys();
      const rootKey = randomBytes(keyBytes);
      const writes = [
        { path: sealPath, value: wrapRootKey(seal, counts, shared, rootKey) },
        { path: keyringPath, value: closeKeyring(rootKey, keyring) },
        { path: rootKeyPath, value: encryptValue(keyring.newest, rootKeyPath, rootKey) },
        ...unsealKeyWrites(seal, keyring.newest, shared),
      ];
      rootKey.fill(0);
      const conditions = [
        { path: sealPath, revision },
        { path: keyringPath, revision: keyringRevision },
      ];
      const { outcome } = await store.commit({ conditions, writes });
      if (outcome === 'committed') {
        await loadCommitted();
        return 'committed';
      }
      if ((await store.get(sealPath))?.revision !== revision) return 'conflict';
    }
    throw new BarrierError('conflict', 'the keyring changes too often; try again');
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
      if (record.type === 'static') return { terms, key: Buffer.from(staticKey(seal, record.keyId).key) };
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

  /** Rewraps the root key with the current static key if the previous one still wraps it. Returns true if it did. */
  async rewrap(): Promise<boolean> {
    const { seal, store } = this.#options;
    if (seal.type !== 'static') return false;
    const { record, revision } = await this.current();
    if (record.keyId === seal.current.id) return false;
    const rootKey = unwrapByStaticKey(seal, record);
    const value = closeSeal({ ...record, keyId: seal.current.id }, seal.current.key, rootKey);
    rootKey.fill(0);
    const { outcome } = await store.commit({ conditions: [{ path: sealPath, revision }], writes: [{ path: sealPath, value }] });
    return outcome === 'committed';
  }
}
