import { randomBytes } from 'node:crypto';
import { type Store, StoreError, type Write } from '@transitd/storage-fsm';
import { keyBytes } from './box.ts';
import { Rekey } from './ceremony/rekey.ts';
import { RootGeneration } from './ceremony/root-generation.ts';
import { BarrierError } from './errors.ts';
import { KeyRotation } from './keyring/key-rotation.ts';
import { closeKeyring, newKeyring, openKeyring, wipeKeyring } from './keyring/keyring.ts';
import { LoadedKeys } from './keyring/loaded-keys.ts';
import { plaintextView } from './keyring/plaintext-view.ts';
import type { RotationConfig } from './keyring/rotation.ts';
import { encryptValue } from './keyring/value.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { isReserved, keyringPath, sealPath } from './paths.ts';
import { readCore, readSeal, type StoredSeal } from './seal/core-records.ts';
import { type WrappedJoinSecret, wrapJoinSecret } from './seal/join-secret.ts';
import { requireOpenable } from './seal/require-openable.ts';
import { requireSameType, unwrapByShares, unwrapByStaticKey, wrapRootKey } from './seal/root-key-wrapping.ts';
import { checkSealConfig, countsFor, type InitializeRequest, type SealConfig, type SealType } from './seal/seal-config.ts';
import { SealKeeper } from './seal/seal-keeper.ts';
import { decodeSeal } from './seal/seal-record.ts';
import { newSharedKey, ShareCollection } from './seal/shares.ts';
import { keptUnsealKey } from './seal/unseal-key.ts';
import { isSnapshotProof, proveSnapshot } from './snapshot-proof.ts';

export interface BarrierOptions {
  /** Where the ciphertext lies. */
  readonly store: Store;
  readonly seal: SealConfig;
  /** The replicated count of values ever written (`ReplicaStatus.valuesWritten`). */
  readonly valuesWritten: () => number;
  /** Whole milliseconds since the epoch. */
  readonly now: () => number;
  /** In force until a configuration is stored. */
  readonly rotation?: RotationConfig;
}

export interface BarrierState {
  readonly initialized: boolean;
  readonly sealed: boolean;
  /** Why the barrier sealed itself, when nobody asked it to. */
  readonly reason?: string;
}

export interface SealStatus {
  readonly type: SealType;
  readonly initialized: boolean;
  readonly sealed: boolean;
  /** Threshold and number of the shares, recovery shares for a static seal; 0 before initialisation. */
  readonly t: number;
  readonly n: number;
  /** Different shares given so far. */
  readonly progress: number;
  /** Names the attempt to unseal once a share is in; else empty. */
  readonly nonce: string;
  readonly recoverySeal: boolean;
}

/** The shares of a new seal, given out once: `key` shares unseal, `recovery` shares only authorise. */
export interface InitialShares {
  readonly kind: 'key' | 'recovery';
  readonly shares: readonly Buffer[];
}

/** Encryption at rest for all records of a store: sealed until the root key is given, plaintext through `store` after. */
export class Barrier {
  /** The records in clear; throws StoreError `sealed` while sealed. */
  readonly store: Store;
  /** Exchanges the shares and the root key. */
  readonly rekey: Rekey;
  /** Lets enough holders of the shares make a root token. */
  readonly rootGeneration: RootGeneration;
  /** Replaces the key under which values are written. */
  readonly rotation: KeyRotation;

  readonly #options: BarrierOptions;
  readonly #ciphertext: Store;
  readonly #keys: LoadedKeys;
  readonly #sealKeeper: SealKeeper;
  readonly #unwatch: () => void;
  readonly #listeners = new Set<(state: BarrierState) => void>();
  readonly #exclusive = oneAtATime();
  #told = { initialized: false, sealed: true };
  #seal: StoredSeal | undefined;
  #unseal: { readonly shares: ShareCollection; readonly sealRevision: number } | undefined;
  /** Counts the calls of `seal`, so that an unseal under way when one comes ends without effect. */
  #seals = 0;

  /** A sealed barrier over what the store holds. @throws BarrierError `barrier_corrupt`, `invalid_seal_config`; StoreError */
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
      settle: async () => {
        await this.#follow(() => this.#refreshSeal());
        await this.#follow(() => this.#reload());
      },
    });
    this.rotation = new KeyRotation({ ...parts, clear: this.store });
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
      progress: this.#unseal?.shares.progress ?? 0,
      nonce: this.#unseal?.shares.nonce ?? '',
      recoverySeal: type === 'static',
    };
  }

  /** Calls `listener` after each change of the state, keys already wiped or in place. Returns the function that ends it. */
  onStateChange(listener: (state: BarrierState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Makes the keys and writes them together with `initialWrites` (plaintext) in one transaction. A shamir seal stays sealed
   * after it; a static one is unsealed.
   * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
   */
  initialize(request: InitializeRequest, initialWrites: readonly Write[]): Promise<InitialShares> {
    return this.#exclusive(async () => {
      if ((await readSeal(this.#ciphertext)) !== undefined) throw alreadyInitialized();
      const { seal, now, valuesWritten } = this.#options;
      const counts = countsFor(seal.type, request);
      if (initialWrites.some(({ path }) => isReserved(path)))
        throw new BarrierError('reserved_path', 'a first record has a path that belongs to the barrier');

      const seals = this.#seals;
      const shared = await newSharedKey(counts);
      const rootKey = randomBytes(keyBytes);
      const keyring = newKeyring({ installedMs: now(), valuesAtInstall: valuesWritten() });
      const sealValue = wrapRootKey(seal, counts, shared, rootKey);
      const unsealKey = keptUnsealKey(seal, keyring.newest, shared);
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
        // From here on nothing may fail: the caller must get the only copy of the shares.
        this.#seal = { record: decodeSeal(sealValue), revision: index };
        installed = seal.type === 'static' && seals === this.#seals;
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
   * Takes one share; with the last one needed the barrier is unsealed. A wrong share changes nothing, nor does any share on
   * an unsealed barrier.
   * @throws BarrierError `not_initialized`, `invalid_share`, `seal_mismatch`, `barrier_corrupt`; StoreError
   */
  unseal(share: Uint8Array): Promise<SealStatus> {
    return this.#exclusive(async () => {
      if (this.#keys.loaded) return this.sealStatus;
      const seals = this.#seals;
      const { seal, keyring } = await readCore(this.#ciphertext);
      if (seal.record.type === 'static')
        throw new BarrierError('seal_mismatch', 'shares do not unseal a seal of type static: they are recovery shares');
      requireSameType(this.#options.seal, seal.record);
      if (seals !== this.#seals) throw sealedMeanwhile();
      const shares = this.#sharesFor(seal);
      shares.add(share);
      this.#unseal = { shares, sealRevision: seal.revision };
      if (!shares.complete) return this.sealStatus;
      const rootKey = await unwrapByShares(seal.record, shares).finally(() => this.#forgetShares());
      await this.#unlock(rootKey, keyring, seals);
      return this.sealStatus;
    });
  }

  /** Forgets the shares given so far. @throws BarrierError `unsealed` */
  resetUnseal(): SealStatus {
    if (this.#keys.loaded) throw new BarrierError('unsealed', 'transitd is unsealed');
    this.#forgetShares();
    return this.sealStatus;
  }

  /**
   * Unseals by the configured static key. A root key that is still wrapped by the previous one is rewrapped when this node can
   * write, else by a later `upkeep`.
   * @throws BarrierError `not_initialized`, `seal_mismatch`, `barrier_corrupt`; StoreError
   */
  autoUnseal(): Promise<void> {
    return this.#exclusive(async () => {
      if (this.#keys.loaded) return;
      const seals = this.#seals;
      const { seal, keyring } = await readCore(this.#ciphertext);
      requireSameType(this.#options.seal, seal.record);
      await this.#unlock(unwrapByStaticKey(this.#options.seal, seal.record), keyring, seals);
      try {
        await this.#sealKeeper.rewrap();
      } catch (error) {
        if (!(error instanceof StoreError)) throw error; // a follower, or no quorum yet: the barrier is open all the same
      }
    });
  }

  /** Wipes every key of the barrier at once; a static key stays with the configuration it came from. */
  seal(reason?: string): void {
    this.#seals += 1;
    this.#forgetShares();
    this.dropAttempts();
    this.#keys.wipe();
    this.#announce(reason);
  }

  /** Ends an exchange of shares and the making of a root token, if any: this node is not the one to go on with it. */
  dropAttempts(): void {
    this.rekey.drop();
    this.rootGeneration.drop();
  }

  /** Seals, and lets go of the store. */
  close(): void {
    this.#unwatch();
    this.seal();
    this.#listeners.clear();
  }

  /** What the leader does from time to time; nothing while sealed. @throws BarrierError `conflict`; StoreError */
  async upkeep(): Promise<{ readonly rewrapped: boolean; readonly rotated: boolean }> {
    if (!this.#keys.loaded) return { rewrapped: false, rotated: false };
    const rewrapped = await this.#exclusive(() => this.#sealKeeper.rewrap());
    const rotated = await this.rotation.isDue();
    if (rotated) await this.rotation.rotate();
    return { rewrapped, rotated };
  }

  /**
   * A fresh secret for one join, wrapped by the seal's key; the caller wipes the secret.
   * @param exchanged - all that the two nodes have said so far, beside the seal's terms; what opens the secret must have seen the same
   * @throws BarrierError `unseal_key_not_kept`, `seal_mismatch`, `barrier_corrupt`; StoreError
   */
  async wrapForJoin(exchanged: Uint8Array): Promise<WrappedJoinSecret> {
    const { terms, key } = await this.#sealKeeper.sealKey();
    const wrapped = wrapJoinSecret(key, { terms, exchanged });
    key.fill(0);
    return wrapped;
  }

  /** Shows that a snapshot with these checksums was made under this root key. @throws StoreError `sealed` */
  proveSnapshot(sums: Uint8Array): Buffer {
    return proveSnapshot(this.#keys.get().rootKey, sums);
  }

  /** Whether a snapshot with these checksums was made under this root key, as `proof` says. @throws StoreError `sealed` */
  isSnapshotProof(sums: Uint8Array, proof: Uint8Array): boolean {
    return isSnapshotProof(this.#keys.get().rootKey, sums, proof);
  }

  /**
   * Checks that this node could open a state with these records of the barrier, by their paths (`sealRecordPaths`); nothing changes.
   * @throws BarrierError `seal_mismatch`, `barrier_corrupt`
   */
  requireOpenable(records: ReadonlyMap<string, Uint8Array>): void {
    requireOpenable(this.#options.seal, records);
  }

  /** The collection in progress, or a new one when there is none or the seal has changed since. */
  #sharesFor({ record, revision }: StoredSeal): ShareCollection {
    if (this.#unseal?.sealRevision === revision) return this.#unseal.shares;
    this.#forgetShares();
    return new ShareCollection(record.threshold, record.shareHashes);
  }

  #forgetShares(): void {
    this.#unseal?.shares.wipe();
    this.#unseal = undefined;
  }

  /** Takes the root key over, or wipes it. `seals` is the count from before the keyring was read. */
  async #unlock(
    rootKey: Buffer,
    stored: { readonly value: Uint8Array; readonly revision: number },
    seals: number,
  ): Promise<void> {
    const keyring = seals === this.#seals ? openKeyring(rootKey, stored.value) : undefined;
    if (keyring === undefined) {
      rootKey.fill(0);
      if (seals !== this.#seals) throw sealedMeanwhile();
      throw new BarrierError('barrier_corrupt', `the root key does not open the record ${keyringPath}`);
    }
    this.#keys.install({ rootKey, keyring, keyringRevision: stored.revision });
    this.#announce();
    await this.#reload(); // a change since the record was read came while there was nothing to reload
  }

  /** A keyring that this node's keys do not open seals it: the keys it has are not the cluster's any more. */
  async #reload(): Promise<void> {
    if (!(await this.#keys.reload())) this.seal('the keyring in the store does not open with the keys of this node');
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

  /** Does what a change in the store calls for. A failing store is no reason to seal: the next read of a new term loads it. */
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
    if (initialized === this.#told.initialized && sealed === this.#told.sealed) return;
    this.#told = { initialized, sealed };
    for (const listener of [...this.#listeners])
      listener(reason === undefined ? { initialized, sealed } : { initialized, sealed, reason });
  }
}

const alreadyInitialized = (): BarrierError => new BarrierError('already_initialized', 'transitd is already initialized');

const sealedMeanwhile = (): StoreError => new StoreError('sealed', 'transitd was sealed while it was being unsealed');
