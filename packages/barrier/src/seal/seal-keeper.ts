import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Store } from '@transitd/storage-fsm';
import { keyBytes } from '../box.ts';
import { BarrierError } from '../errors.ts';
import { closeKeyring, keyringCommitAttempts } from '../keyring/keyring.ts';
import type { Keys } from '../keyring/loaded-keys.ts';
import { encryptValue } from '../keyring/value.ts';
import { keyringPath, rootKeyPath, sealPath, unsealKeyPath } from '../paths.ts';
import { readCore, type StoredSeal } from './core-records.ts';
import { staticKey, unwrapByShares, unwrapByStaticKey, wrapRootKey } from './root-key-wrapping.ts';
import type { SealConfig, ShareCounts } from './seal-config.ts';
import { closeSeal, type SealRecord, type SealTerms } from './seal-record.ts';
import type { ShareCollection, SharedKey } from './shares.ts';
import { keptUnsealKey, openUnsealKey } from './unseal-key.ts';

/** The shares that shall follow those of the seal's record at `revision`. */
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
  /** Brings `keys` up to what the store holds. */
  readonly reload: () => Promise<void>;
  /** Takes a committed change over; a failing store does not make it fail, or the only copy of the shares would be lost. */
  readonly settle: () => Promise<void>;
}

/** Everything that changes the seal's record once it exists, or needs its key. All of it throws StoreError `sealed` while sealed. */
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

  /** Whether these are enough shares of the record's key, and it is the present one. @throws BarrierError `barrier_corrupt` */
  async prove(record: SealRecord, shares: ShareCollection): Promise<void> {
    const { keys, reload } = this.#options;
    await reload();
    keys();
    if (record.type === 'static') return; // recovery shares wrap nothing: that each hash is in the record is the proof
    const unwrapped = await unwrapByShares(record, shares);
    try {
      if (!timingSafeEqual(unwrapped, keys().rootKey))
        throw new BarrierError('barrier_corrupt', `the record ${sealPath} holds another root key`);
    } finally {
      unwrapped.fill(0);
    }
  }

  /**
   * A new root key under new shares, the keyring under that root key, and the root key handed over to the nodes that are
   * unsealed already, in one transaction. `conflict`: the seal's record was replaced by somebody else.
   */
  async replace({ counts, shared, revision }: Replacement): Promise<'committed' | 'conflict'> {
    const { keys, reload, seal, settle, store } = this.#options;
    for (let tries = 0; tries < keyringCommitAttempts; tries += 1) {
      await reload();
      const { keyring, keyringRevision } = keys();
      const rootKey = randomBytes(keyBytes);
      const writes = [
        { path: sealPath, value: wrapRootKey(seal, counts, shared, rootKey) },
        { path: keyringPath, value: closeKeyring(rootKey, keyring) },
        { path: rootKeyPath, value: encryptValue(keyring.newest, rootKeyPath, rootKey) },
        ...keptUnsealKey(seal, keyring.newest, shared),
      ];
      rootKey.fill(0);
      const conditions = [
        { path: sealPath, revision },
        { path: keyringPath, revision: keyringRevision },
      ];
      const { outcome } = await store.commit({ conditions, writes });
      if (outcome === 'committed') {
        await settle();
        return 'committed';
      }
      if ((await store.get(sealPath))?.revision !== revision) return 'conflict';
    }
    throw new BarrierError('conflict', 'the keyring changes too often; try again');
  }

  /**
   * What the seal's record says, with the key that wraps its root key; the caller wipes the key.
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
          'nobody can join yet: the seal was made by a release that did not keep the unseal key; a rekey (sys/rotate/root) makes this cluster joinable',
        );
    }
  }

  /** Wraps the root key by the current static key where the previous one still does. True when it was done. */
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
