import { randomBytes } from 'node:crypto';
import { oneAtATime } from '@transitd/event-loop';
import { type Store, StoreError, type Write } from '@transitd/storage-fsm';
import type { BarrierOptions, BarrierState, InitialShares, SealStatus } from './barrier-types.ts';
import { Rekey } from './ceremony/rekey.ts';
import { SealMigration } from './ceremony/seal-migration.ts';
import { TokenGeneration } from './ceremony/token-generation.ts';
import { KeyRotation } from './keyring/key-rotation.ts';
import { closeKeyring, newKeyring, openKeyring, wipeKeyring } from './keyring/keyring.ts';
import { LoadedKeys } from './keyring/loaded-keys.ts';
import { plaintextView } from './keyring/plaintext-view.ts';
import { SharedKeyring } from './keyring/shared-keyring.ts';
import { encryptValue } from './keyring/value.ts';
import { keyBytes } from './records/box.ts';
import { BarrierError } from './records/errors.ts';
import { isReserved, keyringPath, sealPath } from './records/paths.ts';
import { isProof, type ProofSubject, prove } from './root-key-proof.ts';
import { isSameSealRecord, readCore, readSeal, type StoredSeal } from './seal/core-records.ts';
import { type WrappedJoinSecret, wrapJoinSecret } from './seal/join-secret.ts';
import { KeyTransfer } from './seal/key-transfer.ts';
import { requireOpenable } from './seal/require-openable.ts';
import { newWrappingKey, sealKeyOf, sealWrites, unwrapBySealKey, unwrapByShares } from './seal/root-key-wrapping.ts';
import { checkSealConfig, countsFor, type InitializeRequest, idOf, sealOf } from './seal/seal-config.ts';
import { SealKeeper } from './seal/seal-keeper.ts';
import { decodeSeal } from './seal/seal-record.ts';
import { hashShare, newSharedKey } from './seal/shares.ts';
import { UnsealShares } from './seal/unseal-shares.ts';

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
  readonly rootGeneration: TokenGeneration;
  /** Creates a token for the operators of a disaster-recovery secondary when enough share holders agree. */
  readonly operationTokenGeneration: TokenGeneration;
  /** Rotates the key that encrypts values. */
  readonly rotation: KeyRotation;
  /** The keys for and from another cluster of a replication set. */
  readonly transfer: KeyTransfer;
  /** The keyring for other threads of this process. */
  readonly sharedKeyring = new SharedKeyring();

  readonly #options: BarrierOptions;
  readonly #ciphertext: Store;
  readonly #keys: LoadedKeys;
  readonly #sealKeeper: SealKeeper;
  readonly #migration: SealMigration;
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
    this.#keys = new LoadedKeys(options.store, this.sharedKeyring, options.witnessPath);
    this.store = plaintextView(options.store, {
      keyring: () => this.#keys.get().keyring,
      keyringConditions: () => this.#keys.get().keyringConditions,
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
    this.#migration = new SealMigration({ ...options, seal: this.#sealKeeper, config: options.seal });
    this.rotation = new KeyRotation({ ...parts, plaintext: this.store });
    this.transfer = new KeyTransfer({ ...parts, plaintext: this.store });
    const attempt = { seal: this.#sealKeeper, exclusive: this.#exclusive };
    this.rekey = new Rekey(attempt);
    const generation = (name: string) => new TokenGeneration(name, { ...attempt, clock: options.clock });
    this.rootGeneration = generation('root generation');
    this.operationTokenGeneration = generation('operation token generation');
    this.#unwatch = options.store.watch('core/', (changes) => {
      const touch = (record?: string): boolean => changes === 'everything' || changes.some(({ path }) => path === record);
      if (touch(sealPath)) void this.#follow(() => this.#refreshSeal());
      if (touch(keyringPath) || touch(options.witnessPath)) void this.#follow(() => this.#reload());
    });
  }

  get state(): { readonly initialized: boolean; readonly sealed: boolean } {
    return { initialized: this.#seal !== undefined, sealed: !this.#keys.loaded };
  }

  get sealStatus(): SealStatus {
    const { type, name } = this.#seal?.record ?? idOf(this.#options.seal);
    return {
      ...this.state,
      type,
      ...(name !== undefined && { name }),
      t: this.#seal?.record.threshold ?? 0,
      n: this.#seal?.record.shares ?? 0,
      progress: this.#unsealShares.progress || this.#migration.progress,
      nonce: this.#unsealShares.nonce || this.#migration.nonce,
      recoverySeal: type !== 'shamir',
      migration: this.#migration.isPending(this.#seal?.record),
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
   * is still sealed; one with any other seal is unsealed.
   * @throws BarrierError `already_initialized`, `invalid_seal_config`; ProviderError; StoreError
   */
  initialize(request: InitializeRequest, initialWrites: readonly Write[]): Promise<InitialShares> {
    return this.#exclusive(async () => {
      if ((await readSeal(this.#ciphertext)) !== undefined) throw alreadyInitialized();
      const { seal, clock, valuesWritten } = this.#options;
      const counts = countsFor(seal.type, request);
      if (initialWrites.some(({ path }) => isReserved(path)))
        throw new BarrierError('reserved_path', 'an initial record has a path that is reserved for the barrier');

      const sealCount = this.#sealCount;
      const shared = await newSharedKey(counts);
      const wrapping = await newWrappingKey(seal, shared.key).finally(() => shared.key.fill(0));
      const rootKey = randomBytes(keyBytes);
      const keyring = newKeyring({ installedMs: clock.dueMs(), valuesAtInstall: valuesWritten() });
      const shareHashes = shared.shares.map(hashShare);
      const sealed = sealWrites({ counts, shareHashes, wrapping, rootKey }, keyring.newest);
      wrapping.key.fill(0);
      let installed = false;
      try {
        const { outcome, revision } = await this.#ciphertext.commit({
          conditions: [sealPath, keyringPath].map((path) => ({ path, revision: 0 })),
          writes: [
            ...sealed,
            { path: keyringPath, value: closeKeyring(rootKey, keyring) },
            ...initialWrites.map(({ path, value }) => ({ path, value: value && encryptValue(keyring.newest, path, value) })),
          ],
        });
        if (outcome === 'conflict') throw alreadyInitialized();
        // Nothing below may fail: the caller must get the only copy of the shares.
        this.#seal = { record: decodeSeal(sealed[0].value), revision };
        installed = seal.type !== 'shamir' && sealCount === this.#sealCount;
        if (installed) this.#keys.installRead({ rootKey, keyring }, revision);
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
      if (seal.record.type !== 'shamir')
        throw new BarrierError(
          'seal_mismatch',
          `shares do not unseal a seal of type ${seal.record.type}: they are recovery shares`,
        );
      sealOf(this.#options.seal, seal.record);
      if (sealCount !== this.#sealCount) throw sealedMeanwhile();
      const shares = this.#unsealShares.add(seal, share);
      if (!shares.complete) return this.sealStatus;
      const rootKey = await unwrapByShares(seal.record, shares).finally(() => this.#unsealShares.drop());
      await this.#unlock(rootKey, keyring, sealCount);
      return this.sealStatus;
    });
  }

  /**
   * Adds one share for the migration to the configured seal. With the last one needed, a Shamir seal is opened, and the seal is replaced
   * if this node can write, otherwise by a later `maintain` within ten minutes.
   * @throws BarrierError `not_initialized`, `seal_mismatch`, `invalid_share`, `conflict`, `barrier_corrupt`; ProviderError; StoreError
   */
  migrate(share: Uint8Array): Promise<SealStatus> {
    return this.#exclusive(async () => {
      const sealCount = this.#sealCount;
      const { seal, keyring } = await readCore(this.#ciphertext);
      const step = await this.#migration.addShare(seal, share);
      if (!step.complete) return this.sealStatus;
      const { rootKey } = step;
      if (this.#keys.loaded) rootKey?.fill(0);
      else if (rootKey !== undefined) await this.#unlock(rootKey, keyring, sealCount);
      if (this.#keys.loaded) await ignoringStore(() => this.#migration.migrate());
      return this.sealStatus;
    });
  }

  /** Drops shares for a migration that are too old. */
  expireMigration(): void {
    this.#migration.expire();
  }

  /** Drops the shares provided so far, but not an agreement of enough holders: the caller has no token. @throws BarrierError `unsealed` */
  resetUnseal(): SealStatus {
    if (this.#keys.loaded) throw new BarrierError('unsealed', 'transitd is unsealed');
    this.#unsealShares.drop();
    this.#migration.dropShares();
    return this.sealStatus;
  }

  /**
   * Unseals with the configured static key or the provider. A root key that the previous key wraps is rewrapped at once if this node can
   * write, otherwise by a later `maintain`.
   * @throws BarrierError `not_initialized`, `seal_mismatch`, `barrier_corrupt`; ProviderError; StoreError
   */
  async autoUnseal(): Promise<void> {
    for (let unsealed = this.#keys.loaded; !unsealed; ) {
      const sealCount = this.#sealCount;
      const { seal } = await readCore(this.#ciphertext);
      const configured = sealOf(this.#options.seal, seal.record);
      // Outside the queue: other tasks need not wait for a slow provider.
      const sealKey = await sealKeyOf(configured, seal.record);
      unsealed = await this.#exclusive(() => this.#unlockBy(sealKey, seal.revision, sealCount)).finally(() => sealKey.fill(0));
    }
  }

  /**
   * Unseals with the seal key, unless the seal has another revision by now.
   * @returns whether this barrier was unsealed. A listener may have sealed it again since, for its own reason.
   */
  async #unlockBy(sealKey: Uint8Array, revision: number, sealCount: number): Promise<boolean> {
    const { seal, keyring } = await readCore(this.#ciphertext);
    if (this.#keys.loaded) return true;
    if (seal.revision !== revision) return false;
    const unlocked = await this.#unlock(unwrapBySealKey(seal.record, sealKey), keyring, sealCount);
    await ignoringStore(() => this.#sealKeeper.rewrap());
    return unlocked;
  }

  /** Wipes every key of the barrier synchronously, except a static key, which belongs to the configuration. */
  seal(reason?: string): void {
    this.#sealCount += 1;
    this.#unsealShares.drop();
    this.#migration.drop();
    this.dropAttempts();
    this.#keys.wipe();
    this.#announce(reason);
  }

  /** Ends a rekey and the generation of a token in progress, for a node that is no longer the leader. */
  dropAttempts(): void {
    for (const ceremony of [this.rekey, this.rootGeneration, this.operationTokenGeneration]) ceremony.drop();
  }

  /** Seals the barrier and stops watching the store. */
  close(): void {
    this.#unwatch();
    this.seal();
    this.#listeners.clear();
  }

  /**
   * Rotates the key if due, migrates the seal if enough holders have agreed, and rewraps the root key; does nothing while sealed. The
   * leader calls it periodically. `seal`: only rewraps, on a cluster whose keys are those of a primary.
   * @throws BarrierError `conflict`; ProviderError; StoreError
   */
  async maintain(scope: 'keys' | 'seal' = 'keys') {
    if (!this.#keys.loaded) return { migrated: false, rewrapped: false, rotated: false };
    const isAll = scope === 'keys';
    // First, because a provider that fails must not keep the key in use for longer than its limit.
    const rotated = isAll && (await this.rotation.isDue());
    if (rotated) await this.rotation.rotate();
    const migrated = isAll && (await this.#exclusive(() => this.#migration.migrate()));
    const rewrapped = await this.#exclusive(() => this.#sealKeeper.rewrap());
    return { migrated, rewrapped, rotated };
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

  /** Returns a proof for this subject that this node holds the root key. @throws StoreError `sealed` */
  prove(subject: ProofSubject, bytes: Uint8Array): Buffer {
    return prove(this.#keys.get().rootKey, subject, bytes);
  }

  /** Returns whether `proof` shows that its maker holds this root key. @throws StoreError `sealed` */
  isProof(subject: ProofSubject, bytes: Uint8Array, proof: Uint8Array): boolean {
    return isProof(this.#keys.get().rootKey, subject, bytes, proof);
  }

  /**
   * Checks that this node could unseal a state with these barrier records, given by path (`sealRecordPaths`); nothing changes.
   * @throws BarrierError `seal_mismatch`, `barrier_corrupt`; ProviderError
   */
  requireOpenable(records: ReadonlyMap<string, Uint8Array>): Promise<void> {
    return requireOpenable(this.#options.seal, records);
  }

  /**
   * Loads the keys, or wipes the root key on failure. `sealCount` is the number of `seal` calls before the keyring was read.
   * @returns false if the keyring was replaced meanwhile by one that the keys do not open, so this barrier is sealed again
   */
  async #unlock(
    rootKey: Buffer,
    stored: { readonly value: Uint8Array; readonly revision: number },
    sealCount: number,
  ): Promise<boolean> {
    const keyring = sealCount === this.#sealCount ? openKeyring(rootKey, stored.value) : undefined;
    if (keyring === undefined) {
      rootKey.fill(0);
      if (sealCount !== this.#sealCount) throw sealedMeanwhile();
      throw new BarrierError('barrier_corrupt', `the root key does not open the record ${keyringPath}`);
    }
    this.#keys.installRead({ rootKey, keyring }, stored.revision);
    this.#announce();
    return this.#reloadOrSeal(); // if the record changed after it was read, the watch could not reload it, because no keys were loaded yet
  }

  async #reload(): Promise<void> {
    await this.#reloadOrSeal();
  }

  /**
   * Reloads the keyring. Seals the node if its keys do not open the keyring: they are no longer the cluster's keys.
   * @returns whether they open it
   */
  async #reloadOrSeal(): Promise<boolean> {
    const opens = await this.#keys.reload();
    if (!opens) this.seal("this node's keys do not open the keyring in the store");
    return opens;
  }

  async #refreshSeal(): Promise<void> {
    for (;;) {
      const before = this.#seal;
      const seal = await readSeal(this.#ciphertext);
      if (this.#seal !== before) continue;
      if (!isSameSealRecord(seal, before)) this.#seal = seal;
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

/** Runs a write that a later `maintain` repeats if this node is a follower, or there is no quorum yet. */
async function ignoringStore(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
  }
}

const alreadyInitialized = (): BarrierError => new BarrierError('already_initialized', 'transitd is already initialized');

const sealedMeanwhile = (): StoreError => new StoreError('sealed', 'transitd was sealed while it was being unsealed');
