import { randomBytes } from 'node:crypto';
import { type Store, StoreError, type Write } from '@transitd/storage-fsm';
import { Rekey } from './ceremony/rekey.ts';
import { RootGeneration } from './ceremony/root-generation.ts';
import { KeyRotation } from './keyring/key-rotation.ts';
import { closeKeyring, newKeyring, openKeyring, wipeKeyring } from './keyring/keyring.ts';
import { LoadedKeys } from './keyring/loaded-keys.ts';
import { plaintextView } from './keyring/plaintext-view.ts';
import type { RotationConfig } from './keyring/rotation.ts';
import { encryptValue } from './keyring/value.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { keyBytes } from './records/box.ts';
import { BarrierError } from './records/errors.ts';
import { isReserved, keyringPath, sealPath } from './records/paths.ts';
import { readCore, readSeal, type StoredSeal } from './seal/core-records.ts';
import { type WrappedJoinSecret, wrapJoinSecret } from './seal/join-secret.ts';
import { requireOpenable } from './seal/require-openable.ts';
import { requireSameType, unwrapByShares, unwrapByStaticKey, wrapRootKey } from './seal/root-key-wrapping.ts';
import { checkSealConfig, countsFor, type InitializeRequest, type SealConfig, type SealType } from './seal/seal-config.ts';
import { SealKeeper } from './seal/seal-keeper.ts';
import { decodeSeal } from './seal/seal-record.ts';
import { newSharedKey } from './seal/shares.ts';
import { unsealKeyWrites } from './seal/unseal-key.ts';
import { UnsealShares } from './seal/unseal-shares.ts';
import { isSnapshotProof, proveSnapshot } from './snapshot-proof.ts';

export interface BarrierOptions {
  /** The store with the encrypted records. */
  readonly store: Store;
  readonly seal: SealConfig;
  /** Returns the replicated count of values ever written (`ReplicaStatus.valuesWritten`). */
  readonly valuesWritten: () => number;
  /** Returns the time in whole milliseconds since the epoch. */
  readonly now: () => number;
  /** The rotation configuration that applies until one is stored. */
  readonly rotation?: RotationConfig;
}

export interface BarrierState {
  readonly initialized: boolean;
  readonly sealed: boolean;
  /** Why the barrier sealed itself; absent when a caller sealed it. */
  readonly reason?: string;
}

export interface SealStatus {
  readonly type: SealType;
  readonly initialized: boolean;
  readonly sealed: boolean;
  /** Threshold and number of the shares (recovery shares for a static seal); 0 before initialization. */
  readonly t: number;
  readonly n: number;
  /** Number of different shares provided so far. */
  readonly progress: number;
  /** Identifies the attempt to unseal once the first share was provided; otherwise empty. */
  readonly nonce: string;
  readonly recoverySeal: boolean;
}

/** The shares of a new seal, returned only once: `key` shares unseal, `recovery` shares only authorize. */
export interface InitialShares {
  readonly kind: 'key' | 'recovery';
  readonly shares: readonly Buffer[];
}

/**
 * Encrypts all records of a store at rest. The barrier is sealed until it gets the root key; then `store` gives access to the
 * plaintext.
 */
export class Barrier {
  /** The records in plaintext; throws StoreError `sealed` while sealed. */
  readonly store: Store;
  /** Replaces the shares and the root key. */
  readonly rekey: Rekey;
  /** Creates a root token when enough share holders agree. */
  readonly rootGeneration: RootGeneration;
  /** Rotates the key that encrypts values. */
  readonly rotation: KeyRotation;

  readonly #options: BarrierOptions;
  readonly #ciphertext: Store;
  readonly #keys: LoadedKeys;
  readonly #sealKeeper: SealKeeper;
  readonly #unwatch: () => void;
  readonly #listeners = new Set<(state: BarrierState) => void>();
  readonly #exclusive = oneAtATime();
  #announced = { initialized: false, sealed: true };
  #seal: StoredSeal | undefined;
  readonly #unsealShares = new UnsealShares();
  /** Number of `seal` calls, so that an unseal in progress notices one and has no effect. */
  #sealCount = 0;

  /** Opens a sealed barrier over the store. @throws BarrierError `barrier_corrupt`, `invalid_seal_config`; StoreError */
  static async open(options: BarrierOptions): Promise<Barrier> {
    checkSealConfig(options.seal);
    const barrier = new Barrier(options);
    try {
      await barrier.#refreshSeal();
      return barrier;
    } catch (error) {
      barrier.close();
      throw error;
    }
  }

  private constructor(options: BarrierOptions) {
    this.#options = options;
    this.#ciphertext = options.store;
    this.#keys = new LoadedKeys(options.store);
    this.store = plaintextView(options.store, {
      keyring: () => this.#keys.get().keyring,
      keyringRevision: () => this.#keys.get().keyringRevision,
      reload: () => this.#reload(),
    });
    const parts = { ...options, keys: () => this.#keys.get(), reload: () => this.#reload(), exclusive: this.#exclusive };
    this.#sealKeeper = new SealKeeper({
      ...parts,
      loadCommitted: async () => {
        await this.#follow(() => this.#refreshSeal());
        await this.#follow(() => this.#reload());
      },
    });
    this.rotation = new KeyRotation({ ...parts, plaintext: this.store });
    const attempt = { seal: this.#sealKeeper, exclusive: this.#exclusive };
    this.rekey = new Rekey(attempt);
    this.rootGeneration = new RootGeneration({ ...attempt, now: options.now });
    this.#unwatch = options.store.watch('core/', (changes) => {
      const touches = (record: string): boolean => changes === 'everything' || changes.some(({ path }) => path === record);
      if (touches(sealPath)) void this.#follow(() => this.#refreshSeal());
      if (touches(keyringPath)) void this.#follow(() => this.#reload());
    });
  }

  get state(): { readonly initialized: boolean; readonly sealed: boolean } {
    return { initialized: this.#seal !== undefined, sealed: !this.#keys.loaded };
  }

  get sealStatus(): SealStatus {
    const type = this.#seal?.record.type ?? this.#options.seal.type;
    return {
      ...this.state,
      type,
      t: this.#seal?.record.threshold ?? 0,
      n: this.#seal?.record.shares ?? 0,
      progress: this.#unsealShares.progress,
      nonce: this.#unsealShares.nonce,
      recoverySeal: type === 'static',
    };
  }

  /**
   * Calls `listener` after each change of the state. By then the keys have been wiped or loaded.
   * @returns a function that removes the listener
   */
  onStateChange(listener: (state: BarrierState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Creates the keys and writes them together with `initialWrites` (plaintext) in one transaction. Afterwards a barrier with a Shamir seal
   * is still sealed; one with a static seal is unsealed.
   * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
   */
  initialize(request: InitializeRequest, initialWrites: readonly Write[]): Promise<InitialShares> {
    return this.#exclusive(async () => {
      if ((await readSeal(this.#ciphertext)) !== undefined) throw alreadyInitialized();
      const { seal, now, valuesWritten } = this.#options;
      const counts = countsFor(seal.type, request);
      if (initialWrites.some(({ path }) => isReserved(path)))
        throw new BarrierError('reserved_path', 'an initial record has a path that is reserved for the barrier');

      const sealCount = this.#sealCount;
      const shared = await newSharedKey(counts);
      const rootKey = randomBytes(keyBytes);
      const keyring = newKeyring({ installedMs: now(), valuesAtInstall: valuesWritten() });
      const sealValue = wrapRootKey(seal, counts, shared, rootKey);
      const unsealKey = unsealKeyWrites(seal, keyring.newest, shared);
      shared.key.fill(0);
      let installed = false;
      try {
        const { outcome, index } = await this.#ciphertext.commit({
          conditions: [sealPath, keyringPath].map((path) => ({ path, revision: 0 })),
          writes: [
            { path: sealPath, value: sealValue },
            { path: keyringPath, value: closeKeyring(rootKey, keyring) },
            ...unsealKey,
            ...initialWrites.map(({ path, value }) => ({ path, value: value && encryptValue(keyring.newest, path, value) })),
          ],
        });
        if (outcome === 'conflict') throw alreadyInitialized();
        // Nothing below may fail: the caller must get the only copy of the shares.
        this.#seal = { record: decodeSeal(sealValue), revision: index };
        installed = seal.type === 'static' && sealCount === this.#sealCount;
        if (installed) this.#keys.install({ rootKey, keyring, keyringRevision: index });
      } finally {
        if (!installed) {
          rootKey.fill(0);
          wipeKeyring(keyring);
        }
      }
      this.#announce();
      return { kind: seal.type === 'shamir' ? 'key' : 'recovery', shares: shared.shares };
    });
  }

  /**
   * Adds one share; the last one needed unseals the barrier. A wrong share changes nothing. On an unsealed barrier, no share changes
   * anything.
   * @throws BarrierError `not_initialized`, `invalid_share`, `seal_mismatch`, `barrier_corrupt`; StoreError
   */
  unseal(share: Uint8Array): Promise<SealStatus> {
    return this.#exclusive(async () => {
      if (this.#keys.loaded) return this.sealStatus;
      const sealCount = this.#sealCount;
      const { seal, keyring } = await readCore(this.#ciphertext);
      if (seal.record.type === 'static')
        throw new BarrierError('seal_mismatch', 'shares do not unseal a seal of type static: they are recovery shares');
      requireSameType(this.#options.seal, seal.record);
      if (sealCount !== this.#sealCount) throw sealedMeanwhile();
      const shares = this.#unsealShares.add(seal, share);
      if (!shares.complete) return this.sealStatus;
      const rootKey = await unwrapByShares(seal.record, shares).finally(() => this.#unsealShares.drop());
      await this.#unlock(rootKey, keyring, sealCount);
      return this.sealStatus;
    });
  }

  /** Drops the shares provided so far. @throws BarrierError `unsealed` */
  resetUnseal(): SealStatus {
    if (this.#keys.loaded) throw new BarrierError('unsealed', 'transitd is unsealed');
    this.#unsealShares.drop();
    return this.sealStatus;
  }

  /**
   * Unseals with the configured static key. A root key that is still wrapped by the previous key is rewrapped at once if this node can
   * write, otherwise by a later `maintain`.
   * @throws BarrierError `not_initialized`, `seal_mismatch`, `barrier_corrupt`; StoreError
   */
  autoUnseal(): Promise<void> {
    return this.#exclusive(async () => {
      if (this.#keys.loaded) return;
      const sealCount = this.#sealCount;
      const { seal, keyring } = await readCore(this.#ciphertext);
      requireSameType(this.#options.seal, seal.record);
      await this.#unlock(unwrapByStaticKey(this.#options.seal, seal.record), keyring, sealCount);
      try {
        await this.#sealKeeper.rewrap();
      } catch (error) {
        if (!(error instanceof StoreError)) throw error; // a follower, or no quorum yet: the barrier stays unsealed
      }
    });
  }

  /** Wipes every key of the barrier synchronously, except a static key, which belongs to the configuration. */
  seal(reason?: string): void {
    this.#sealCount += 1;
    this.#unsealShares.drop();
    this.dropAttempts();
    this.#keys.wipe();
    this.#announce(reason);
  }

  /** Ends a rekey and a root generation in progress, for a node that is no longer the leader. */
  dropAttempts(): void {
    this.rekey.drop();
    this.rootGeneration.drop();
  }

  /** Seals the barrier and stops watching the store. */
  close(): void {
    this.#unwatch();
    this.seal();
    this.#listeners.clear();
  }

  /**
   * Rewraps the root key and rotates the key if due; does nothing while sealed. The leader calls it periodically.
   * @throws BarrierError `conflict`; StoreError
   */
  async maintain(): Promise<{ readonly rewrapped: boolean; readonly rotated: boolean }> {
    if (!this.#keys.loaded) return { rewrapped: false, rotated: false };
    const rewrapped = await this.#exclusive(() => this.#sealKeeper.rewrap());
    const rotated = await this.rotation.isDue();
    if (rotated) await this.rotation.rotate();
    return { rewrapped, rotated };
  }

  /**
   * Returns a fresh secret for one join, wrapped by the seal's key; the caller wipes the secret.
   * @param exchanged - all messages that the two nodes have exchanged, except the seal's terms; the other node must have seen the
   * same messages
   * @throws BarrierError `unseal_key_not_kept`, `seal_mismatch`, `barrier_corrupt`; StoreError
   */
  async wrapForJoin(exchanged: Uint8Array): Promise<WrappedJoinSecret> {
    const { terms, key } = await this.#sealKeeper.sealKey();
    const wrapped = wrapJoinSecret(key, { terms, exchanged });
    key.fill(0);
    return wrapped;
  }

  /** Returns a proof that a snapshot with these checksums was made under this root key. @throws StoreError `sealed` */
  proveSnapshot(sums: Uint8Array): Buffer {
    return proveSnapshot(this.#keys.get().rootKey, sums);
  }

  /** Returns whether `proof` shows that a snapshot with these checksums was made under this root key. @throws StoreError `sealed` */
  isSnapshotProof(sums: Uint8Array, proof: Uint8Array): boolean {
    return isSnapshotProof(this.#keys.get().rootKey, sums, proof);
  }

  /**
   * Checks that this node could unseal a state with these barrier records, given by path (`sealRecordPaths`); nothing changes.
   * @throws BarrierError `seal_mismatch`, `barrier_corrupt`
   */
  requireOpenable(records: ReadonlyMap<string, Uint8Array>): void {
    requireOpenable(this.#options.seal, records);
  }

  /** Loads the keys, or wipes the root key on failure. `sealCount` is the number of `seal` calls before the keyring was read. */
  async #unlock(
    rootKey: Buffer,
    stored: { readonly value: Uint8Array; readonly revision: number },
    sealCount: number,
  ): Promise<void> {
    const keyring = sealCount === this.#sealCount ? openKeyring(rootKey, stored.value) : undefined;
    if (keyring === undefined) {
      rootKey.fill(0);
      if (sealCount !== this.#sealCount) throw sealedMeanwhile();
      throw new BarrierError('barrier_corrupt', `the root key does not open the record ${keyringPath}`);
    }
    this.#keys.install({ rootKey, keyring, keyringRevision: stored.revision });
    this.#announce();
    await this.#reload(); // if the record changed after it was read, the watch could not reload it, because no keys were loaded yet
  }

  /** Reloads the keyring. Seals the node if its keys do not open the keyring: they are no longer the cluster's keys. */
  async #reload(): Promise<void> {
    if (!(await this.#keys.reload())) this.seal("this node's keys do not open the keyring in the store");
  }

  async #refreshSeal(): Promise<void> {
    for (;;) {
      const before = this.#seal;
      const seal = await readSeal(this.#ciphertext);
      if (this.#seal !== before) continue;
      if (seal?.revision !== before?.revision) this.#seal = seal;
      this.#announce();
      return;
    }
  }

  /**
   * Handles a change in the store. A failing store does not seal the barrier: the next read of a value with a new term loads the
   * keyring.
   */
  async #follow(task: () => Promise<void>): Promise<void> {
    try {
      await task();
    } catch (error) {
      if (error instanceof BarrierError) this.seal(error.message);
      else if (!(error instanceof StoreError)) throw error;
    }
  }

  #announce(reason?: string): void {
    const { initialized, sealed } = this.state;
    if (initialized === this.#announced.initialized && sealed === this.#announced.sealed) return;
    this.#announced = { initialized, sealed };
    for (const listener of [...this.#listeners])
      listener(reason === undefined ? { initialized, sealed } : { initialized, sealed, reason });
  }
}

const alreadyInitialized = (): BarrierError => new BarrierError('already_initialized', 'transitd is already initialized');

const sealedMeanwhile = (): StoreError => new StoreError('sealed', 'transitd was sealed while it was being unsealed');
