import type { RecordClock } from '@transitd/process';
import type { Store, Transaction } from '@transitd/storage-fsm';
import { NoncePool } from './algorithms/nonce-pool.ts';
import { deletesEarlier, trimsSooner } from './keys/aging.ts';
import { type EngineCaches, engineCaches } from './keys/cache-budget.ts';
import { ChangeQueue } from './keys/change-queue.ts';
import { changeDue, type DueChange, type DueKind, type DuePauses, type DueRound, isDue } from './keys/due.ts';
import {
  type CreateKeyRequest,
  checkMayUpdate,
  creationWarnings,
  deleteKey,
  heldBack,
  type KeyChange,
  type LossCheck,
  rotateKey,
  type StoredKey,
  settingsOf,
  spentWrites,
  trimAged,
  trimKey,
  typeWarnings,
  unchanged,
} from './keys/key.ts';
import {
  type DisableVersionRequest,
  disableVersion,
  enableVersion,
  endSchedule,
  restoreDeleted,
  scheduleDeletion,
  softDelete,
} from './keys/key-availability.ts';
import { KeyCache, type LoadedKey } from './keys/key-cache.ts';
import { type ConfigureKeyRequest, configureKey } from './keys/key-config.ts';
import { afterMaking, KeyConfirmations, noConfirmation, type SecondaryConfirmation } from './keys/key-confirmations.ts';
import { KeyNames, type ListRequest, type LongList } from './keys/key-names.ts';
import { checkNotDeleted } from './keys/key-record.ts';
import { apiNameOf } from './keys/key-type.ts';
import { addedUses, decodeKeyUsage, encodeKeyUsage, type KeyUsage, unusedKey, type VersionUse } from './keys/key-usage.ts';
import { type KeyView, keyView } from './keys/key-view.ts';
import { KeyViews } from './keys/key-views.ts';
import {
  type CacheConfig,
  type KeysConfig,
  readCacheConfig,
  readKeysConfig,
  writeCacheConfig,
  writeKeysConfig,
} from './keys/mount-config.ts';
import { managedMaterial, newKey, withFreshVersion } from './keys/new-version.ts';
import { type NearLimit, nearLimit } from './keys/operation-limit.ts';
import { type DuePlace, type Paths, pathsOf } from './keys/paths.ts';
import { sweepVersions } from './keys/sweep.ts';
import { type ManagedKeyReference, type ManagedKeys, noManagedKeys } from './managed/provider.ts';
import { Ciphertexts } from './operations/ciphertexts.ts';
import { checkText, contextOf } from './operations/inputs.ts';
import type { Tools, UseObserver } from './operations/operation.ts';
import { Signing } from './operations/signing.ts';
import { KeyTransfers } from './transfers/key-transfers.ts';
import { WrappingKey } from './transfers/wrapping-key.ts';
import { TransitError } from './values/errors.ts';
import { commitAndWipe, wipe } from './values/secrets.ts';
import { KeyCertificates } from './x509/key-certificates.ts';

export interface TransitEngineOptions {
  /** Holds plaintext records; the layers below encrypt them. */
  readonly store: Store;
  /** The mount's id, which is a part of the path of every record. */
  readonly mountId: string;
  /** First part of every ciphertext string, `svc` when absent. */
  readonly ciphertextPrefix?: string;
  /** Dates keys and their versions, and says when a rotation is due. */
  readonly clock: RecordClock;
  /** Memory that the engines of a thread share; memory of its own when absent. */
  readonly caches?: EngineCaches;
  /** Keys of other systems that the mount may use; none when absent. */
  readonly managedKeys?: ManagedKeys;
  /** Reports when keys are used; none when absent. */
  readonly observer?: UseObserver | undefined;
  /** The secondary clusters, which must have key material before it is used; none when absent. */
  readonly secondaries?: SecondaryConfirmation | undefined;
}

/** A key after a successful change, and warnings for the caller. */
export interface KeyAnswer {
  readonly key: KeyView;
  readonly warnings: readonly string[];
}

/** Properties of a key that decide which fields of a request it uses. */
export interface KeyTraits {
  /** As in the API. */
  readonly type: string;
  readonly derived: boolean;
  readonly convergent: boolean;
}

/** A key with its recorded uses. */
export interface UsedKey {
  readonly key: StoredKey;
  readonly usage: KeyUsage;
}

/**
 * One mount's named keys and the operations on them. Every change is one conditional transaction computed from the current records, so
 * it is applied completely or not at all. A refusal is a {@link TransitError}; errors of the store pass through.
 */
export class TransitEngine {
  /** The mount's id. */
  readonly mountId: string;
  readonly #store: Store;
  readonly #paths: Paths;
  readonly #clock: RecordClock;
  readonly #keys: KeyCache;
  readonly #views: KeyViews;
  readonly #names: KeyNames;
  readonly #changes = new ChangeQueue();
  readonly #secondaries: SecondaryConfirmation;
  readonly #confirmations: KeyConfirmations;
  readonly #managedKeys: ManagedKeys;
  readonly #tools: Tools & { prefix: string };
  readonly #unwatch: () => void;
  /** Encrypts, decrypts and rewraps; makes data keys. */
  readonly ciphertexts: Ciphertexts;
  /** Import, export, backup and restore. */
  readonly transfers: KeyTransfers;
  /** Signatures and MACs. */
  readonly signing: Signing;
  readonly certificates: KeyCertificates;
  #sweepCursor = '';
  readonly #pauses: Record<DueKind, DuePauses> = { rotations: new Map(), trims: new Map(), deletions: new Map() };

  constructor(options: TransitEngineOptions) {
    const { store, mountId, ciphertextPrefix = 'svc', clock, caches = engineCaches() } = options;
    this.mountId = mountId;
    this.#store = store;
    this.#paths = pathsOf(mountId);
    this.#clock = clock;
    this.#keys = new KeyCache(store, this.#paths, caches.keys);
    this.#views = new KeyViews({ store, paths: this.#paths, keys: this.#keys });
    this.#names = new KeyNames(store, this.#paths.keys, caches.names);
    // A node that is being sealed cannot read the cache size. It reads the size again after unsealing.
    this.#unwatch = store.watch(this.#paths.cacheReload, () => void this.open().catch(() => undefined));
    this.#managedKeys = options.managedKeys ?? noManagedKeys;
    this.#tools = {
      keys: this.#keys,
      nonces: new NoncePool(),
      prefix: ciphertextPrefix,
      managedKeys: this.#managedKeys,
      observer: options.observer,
    };
    const tools: Tools = this.#tools;
    this.#secondaries = options.secondaries ?? noConfirmation;
    const base = { store, paths: this.#paths, keys: this.#keys, changes: this.#changes, clock };
    this.#confirmations = new KeyConfirmations({ ...base, secondaries: this.#secondaries });
    const parts = { ...base, confirmations: this.#confirmations };
    this.ciphertexts = new Ciphertexts({ ...parts, tools });
    this.signing = new Signing(tools);
    this.transfers = new KeyTransfers({ ...parts, wrappingKey: new WrappingKey(store, this.#paths) });
    this.certificates = new KeyCertificates(parts);
  }

  /** Sets the prefix of ciphertext strings. */
  set ciphertextPrefix(prefix: string) {
    this.#tools.prefix = prefix;
  }

  /** Applies the stored cache size. Call it before the first request. */
  async open(): Promise<void> {
    const { size } = await readCacheConfig(this.#store, this.#paths);
    this.#keys.resize(size);
  }

  /** Makes every node apply the stored cache size and empty its cache. This node has done so when the promise resolves. */
  async reload(): Promise<void> {
    await this.#store.commit({ conditions: [], writes: [{ path: this.#paths.cacheReload, value: reloadMark }] });
    await this.open();
  }

  /**
   * Ends the watches and drops every key. The engine must not be used afterwards.
   * @param refusal - makes the error for operations in progress; StoreError `sealed` when absent
   */
  close(refusal?: () => Error): void {
    this.#unwatch();
    this.#names.close();
    this.#keys.close(refusal);
  }

  /** Whether the key exists, which decides between the capabilities create and update. */
  async keyExists(name: string): Promise<boolean> {
    return (this.#keys.cached(name) ?? (await this.#keys.key(name))) !== undefined;
  }

  /** Returns the properties of a key that decide which fields of a request it uses; undefined if the key does not exist. */
  async keyTraits(name: string): Promise<KeyTraits | undefined> {
    const key = this.#keys.cached(name) ?? (await this.#keys.key(name));
    return key && { type: apiNameOf(key.type), derived: key.record.derived, convergent: key.record.convergent };
  }

  /** Returns the revision of a cached key. While the revision is the same, responses made from the key are valid. */
  cachedRevision(name: string): number | undefined {
    return this.#keys.cached(name)?.revision;
  }

  /**
   * Creates a key, or returns the existing key of that name unchanged.
   * @throws TransitError `invalid_request`, `unconfirmed`; `permission_denied` for an existing key that the caller may not update
   */
  async createKey(name: string, request: CreateKeyRequest): Promise<KeyAnswer> {
    const settings = settingsOf(request);
    const existing = async (key: LoadedKey): Promise<KeyAnswer> => {
      checkMayUpdate(request);
      return { key: await this.#views.of(key), warnings: creationWarnings(key, request) };
    };
    const create = async (isHeld: boolean): Promise<KeyAnswer | undefined> => {
      const present = await this.#keys.key(name);
      if (present !== undefined) return existing(present);
      const { key, firstVersion, transaction } = await newKey(this.#paths, name, settings, this.#clock.dueMs(), {
        given: () => managedMaterial(this.#managedKeys, settings, request),
        isHeld,
        observer: this.#tools.observer,
      });
      const revision = await commitAndWipe(this.#store, transaction);
      if (revision === undefined) return undefined;
      return { key: keyView({ ...key, revision }, [firstVersion]), warnings: typeWarnings(key.record) };
    };
    return this.#making(name, create, existing);
  }

  /** @param context - base64; selects the public key of a derived key pair @throws TransitError `not_found` */
  async readKey(name: string, { context = '' }: { readonly context?: string | undefined } = {}): Promise<KeyView> {
    checkText('context', context);
    const key = await this.#keys.key(name);
    if (key === undefined) throw new TransitError('not_found', 'no such key');
    return this.#views.of(key, context === '' ? undefined : contextOf(key, context));
  }

  /**
   * Returns names in ascending byte order. The full list is the same object as before if no key was added or removed. A list that is too
   * long to be held in memory is returned page by page.
   * @throws TransitError `not_found` for an empty list
   */
  async listKeys(request: ListRequest = {}): Promise<readonly string[] | LongList> {
    const names = await this.#names.list(request);
    if ('length' in names && names.length === 0) throw new TransitError('not_found', 'no keys');
    return names;
  }

  /** @throws TransitError `key_not_found`, `deletion_not_allowed`; what `check` throws */
  async deleteKey(name: string, check?: LossCheck): Promise<void> {
    await this.#changes.run(name, async () => {
      const key = await this.#keys.key(name);
      if (key === undefined) {
        throw new TransitError('key_not_found', `error deleting policy ${name}: could not delete key; not found`);
      }
      const transaction = deleteKey(this.#paths, key);
      await check?.(key, () => true);
      return commitAndWipe(this.#store, transaction);
    });
  }

  /** Refuses every use of a key until it is restored; whatever its `deletion_allowed` says. @throws TransitError `key_not_found` */
  softDeleteKey(name: string): Promise<KeyAnswer> {
    return this.#change(name, notFound(name), (key) => softDelete(this.#paths, key));
  }

  /**
   * Soft-deletes a key, and lets {@link deleteDue} delete it when the time has passed.
   * @param afterS - seconds: 7 to 90 days
   * @throws TransitError `key_not_found`, `invalid_request`, `deletion_not_allowed`; what `check` throws
   */
  scheduleDeletion(name: string, afterS: number, check?: LossCheck): Promise<KeyAnswer> {
    return this.#change(name, notFound(name), async (key) => {
      const change = scheduleDeletion(this.#paths, key, afterS, this.#clock.utcMs());
      await check?.(key, () => true);
      return change;
    });
  }

  /** Lets a soft-deleted key be used again, and ends its schedule. @throws TransitError `key_not_found` */
  restoreDeletedKey(name: string): Promise<KeyAnswer> {
    return this.#change(name, notFound(name), (key) => restoreDeleted(this.#paths, key));
  }

  /** Refuses every use of one version. @throws TransitError `key_not_found`, `invalid_request`, `key_version_unavailable` */
  disableVersion(name: string, request: DisableVersionRequest): Promise<KeyAnswer> {
    return this.#change(name, notFound(name), (key) => disableVersion(this.#paths, key, request, this.#clock.dueMs()));
  }

  /** Lets a disabled version be used again. @throws TransitError `key_not_found`, `key_version_unavailable` */
  enableVersion(name: string, version: number): Promise<KeyAnswer> {
    return this.#change(name, notFound(name), (key) => enableVersion(this.#paths, key, version));
  }

  /**
   * @param check - asked about versions that may no longer decrypt and verify, and about those that a new `trim_after` will delete
   * @param requireTrim - called if the change lets `trim_after` delete versions that would stay, or delete them earlier
   * @throws TransitError `key_not_found`, `invalid_request`; what `check` and `requireTrim` throw
   */
  configureKey(name: string, request: ConfigureKeyRequest, check?: LossCheck, requireTrim?: () => void): Promise<KeyAnswer> {
    return this.#change(name, notFound(name), async (key) => {
      // Only a limit of the key depends on its uses.
      const isLimited = (request.maxOperations ?? key.record.maxOperations) !== undefined;
      const usage = isLimited ? await this.#usageOf(key) : undefined;
      const change = configureKey(this.#paths, key, request, this.#clock.utcMs(), usage);
      const [before, after] = [key.record, change.record];
      if (deletesEarlier(before, after)) requireTrim?.();
      const first = trimsSooner(before, after) ? Math.max(before.minAvailableVersion, 1) : before.minDecryptionVersion;
      const end = after.minDecryptionVersion;
      if (end > first) await check?.(key, (version) => version >= first && version < end);
      return change;
    });
  }

  /**
   * @param reference - the key of another system, for a new version of a managed key
   * @throws TransitError `key_not_found`, `invalid_request`, `soft_deleted`, `unconfirmed`
   */
  rotateKey(name: string, reference: ManagedKeyReference = {}): Promise<KeyAnswer> {
    return this.#making(name, (isHeld) =>
      this.#changed(name, 'key not found', (key) => this.#rotation(isHeld ? heldBack(key) : key, reference)),
    );
  }

  /**
   * Lets material be used that the secondary clusters have confirmed after its request had ended. Only the active node calls it.
   * @returns whether none is left
   */
  useConfirmed(): Promise<boolean> {
    return this.#confirmations.useConfirmed();
  }

  /**
   * Rotates the keys whose automatic rotation is due. Only the active node calls it, periodically. Each rotation is one transaction that
   * also moves the key's due time, so if several nodes try, only one rotates. A key that could not be rotated is tried more and more
   * rarely, at least each hour.
   * @param limit - maximum number of rotations
   * @param around - called for each key that is due, to record its rotation
   */
  rotateDue(limit: number, around: DueChange = (_, rotate) => rotate()): Promise<DueRound> {
    const mayBegin = async (): Promise<boolean> => {
      await this.#secondaries.required(); // if one is absent, the round ends before anything is recorded
      return true;
    };
    return this.#dueRound('rotations', limit, around, { mayBegin, change: (place) => this.#rotateAsDue(place) });
  }

  /**
   * Deletes the versions that have been below the minimum of their keys for as long as `trim_after` says. As {@link rotateDue}, but a
   * removal that meets another change of its key is left to the next call.
   * @param mayDestroy - asked before each removal, after its key was read
   */
  trimDue(limit: number, mayDestroy: () => boolean, around: DueChange = (_, trim) => trim()): Promise<DueRound> {
    const change = (place: DuePlace): Promise<number | undefined> => this.#trimAsDue(place, mayDestroy);
    return this.#dueRound('trims', limit, around, { mayBegin: mayDestroy, change });
  }

  /**
   * Deletes the keys whose scheduled deletion is due by both clocks. As {@link trimDue}; a key that may not be deleted any more fails once,
   * loses its schedule and stays soft-deleted.
   */
  deleteDue(limit: number, mayDestroy: () => boolean, around: DueChange = (_, remove) => remove()): Promise<DueRound> {
    const change = (place: DuePlace): Promise<number | undefined> => this.#deleteAsDue(place, mayDestroy);
    return this.#dueRound('deletions', limit, around, { mayBegin: mayDestroy, change });
  }

  /** @throws TransitError `key_not_found`, `invalid_request`; what `check` throws */
  trimKey(
    name: string,
    { minAvailableVersion }: { readonly minAvailableVersion?: number | undefined },
    check?: LossCheck,
  ): Promise<KeyAnswer> {
    return this.#change(name, 'invalid key name', async (key) => {
      const change = trimKey(this.#paths, key, minAvailableVersion);
      if (change.transaction !== undefined) await check?.(key, (version) => version < change.record.minAvailableVersion);
      return change;
    });
  }

  /** Returns a key with its recorded uses. @throws TransitError `not_found` */
  async usedKey(name: string): Promise<UsedKey> {
    const key = await this.#keys.key(name);
    if (key === undefined) throw new TransitError('not_found', 'no such key');
    return { key, usage: await this.#usageOf(key) };
  }

  /**
   * Returns the transaction that adds uses to those recorded of a key.
   * @param id - of the key that was used; undefined is returned if no key of the name has it any more
   */
  async addingUses(
    name: string,
    id: string,
    uses: Iterable<readonly [version: number, use: VersionUse]>,
  ): Promise<Transaction | undefined> {
    const key = await this.#keys.key(name);
    if (key?.record.id !== id) return undefined;
    const scope = { lowest: key.record.minAvailableVersion, nowMs: this.#clock.utcMs() };
    const usage = addedUses(await this.#usageOf(key), uses, scope);
    const writes = [{ path: this.#paths.usage(name), value: encodeKeyUsage(usage) }];
    return { conditions: [unchanged(this.#paths, key)], writes: [...writes, ...spentWrites(this.#paths, key, usage)] };
  }

  /** Returns the key's newest version if it has made 80 % of what it may; undefined also if no key of the name has this id. */
  async nearLimit(name: string, id: string): Promise<NearLimit | undefined> {
    const key = await this.#keys.key(name);
    if (key?.record.id !== id) return undefined;
    return nearLimit(key.record, await this.#usageOf(key));
  }

  readKeysConfig(): Promise<KeysConfig> {
    return readKeysConfig(this.#store, this.#paths);
  }

  async writeKeysConfig(config: KeysConfig): Promise<KeysConfig> {
    await writeKeysConfig(this.#store, this.#paths, config);
    return config;
  }

  readCacheConfig(): Promise<CacheConfig> {
    return readCacheConfig(this.#store, this.#paths);
  }

  /** Stores the cache size, which {@link reload} applies. @throws TransitError `invalid_request` */
  async writeCacheConfig(config: CacheConfig): Promise<CacheConfig> {
    await writeCacheConfig(this.#store, this.#paths, config);
    return config;
  }

  /**
   * Continues the deletion of unreachable version records; see {@link sweepVersions}.
   * @param limit - approximate maximum of records to read and delete
   * @returns whether the end was reached, and the number of deleted records
   */
  async sweep(limit: number): Promise<{ readonly removed: number; readonly finished: boolean }> {
    const { cursor, removed, finished } = await sweepVersions(this.#store, this.#paths, {
      cursor: this.#sweepCursor,
      limit,
      isKept: (keyId) => this.transfers.isRestoring(keyId),
    });
    this.#sweepCursor = cursor;
    return { removed, finished };
  }

  /** Runs a change that makes key material, and waits until the material may be used. @param existing - see `KeyConfirmations.making` */
  async #making(
    name: string,
    change: (isHeld: boolean) => Promise<KeyAnswer | undefined>,
    existing?: (key: LoadedKey) => Promise<KeyAnswer>,
  ): Promise<KeyAnswer> {
    const run = (held: boolean): Promise<KeyAnswer> => this.#changes.run(name, () => change(held));
    const { made, isHeld, warnings } = await this.#confirmations.making(name, run, existing);
    // The newest version was hidden in the view that was made first.
    const view = isHeld ? await afterMaking(name, () => this.#newestView(name)) : undefined;
    return { key: view ?? made.key, warnings: [...made.warnings, ...warnings] };
  }

  #change(name: string, missing: string, change: (key: LoadedKey) => KeyChange | Promise<KeyChange>): Promise<KeyAnswer> {
    return this.#changes.run(name, () => this.#changed(name, missing, change));
  }

  /** Returns undefined if another change came first. */
  async #changed(
    name: string,
    missing: string,
    change: (key: LoadedKey) => KeyChange | Promise<KeyChange>,
  ): Promise<KeyAnswer | undefined> {
    const key = await this.#keys.key(name);
    if (key === undefined) throw new TransitError('key_not_found', missing);
    const { record, newVersion, transaction, warnings } = await change(key);
    if (transaction === undefined) return { key: await this.#views.of(key), warnings };
    try {
      // Nothing is read after the commit, so a committed change is answered even if the node is sealed at that moment.
      const kept = await this.#views.versionsAfter(key, record);
      const versions = newVersion === undefined ? kept : [...kept, newVersion];
      const changed = await this.#keys.keepChanged({ name, record }, versions, () => commitAndWipe(this.#store, transaction));
      return changed && { key: changed, warnings };
    } finally {
      wipe(transaction.writes);
    }
  }

  async #rotation(key: StoredKey, reference: ManagedKeyReference = {}): Promise<KeyChange> {
    checkNotDeleted(key.record);
    const given = await managedMaterial(this.#managedKeys, key.record, reference);
    const { observer } = this.#tools;
    const source = { record: key.record, nowMs: this.#clock.dueMs(), given, observer };
    return withFreshVersion(source, (fresh) => rotateKey(this.#paths, key, fresh, this.#clock.utcMs()));
  }

  /**
   * Returns the new version of the key; undefined if it was deleted, its due time has changed, or its newest version is unconfirmed. Does
   * not wait until the new version may be used.
   */
  async #rotateAsDue(place: DuePlace): Promise<number | undefined> {
    const { version } = await this.#changes.run(place.name, async () => {
      const isHeld = await this.#secondaries.required(); // the setting may have changed while the rotation was recorded
      const key = await this.#keys.key(place.name);
      if (!isDue('rotations', key, place)) return { version: undefined };
      const { record, transaction } = await this.#rotation(isHeld ? heldBack(key) : key);
      const isWritten = transaction !== undefined && (await commitAndWipe(this.#store, transaction)) !== undefined;
      return isWritten ? { version: record.latestVersion } : undefined;
    });
    return version;
  }

  /** Runs one round of changes that are due. @param mayBegin - asked about each key before its change is recorded */
  async #dueRound(
    kind: DueKind,
    limit: number,
    around: DueChange,
    {
      mayBegin,
      change,
    }: {
      readonly mayBegin: () => boolean | Promise<boolean>;
      readonly change: (place: DuePlace) => Promise<number | undefined>;
    },
  ): Promise<DueRound> {
    const from = { store: this.#store, index: this.#paths[kind], nowMs: this.#clock.dueMs() };
    const { pauses, ...round } = await changeDue(from, limit, this.#pauses[kind], async (place) => {
      if (!isDue(kind, await this.#keys.key(place.name), place) || !(await mayBegin())) return false;
      return (await around(place.name, () => change(place))) !== undefined;
    });
    this.#pauses[kind] = pauses;
    return round;
  }

  async #usageOf({ name, record: { id } }: StoredKey): Promise<KeyUsage> {
    const stored = await this.#store.get(this.#paths.usage(name));
    const usage = stored && decodeKeyUsage(stored.value);
    return usage?.id === id ? usage : unusedKey(id);
  }

  /** Returns the oldest version that is left; undefined if nothing was removed. */
  #trimAsDue(place: DuePlace, mayDestroy: () => boolean): Promise<number | undefined> {
    const { name } = place;
    return this.#changes.exclusively(name, async () => {
      const key = await this.#keys.key(name);
      // A restore of the cluster that is applied after this question conflicts, because it replaces the record that was read before.
      if (!isDue('trims', key, place) || !mayDestroy()) return undefined;
      const { record, transaction } = trimAged(this.#paths, key, this.#clock.dueMs());
      const isWritten = transaction !== undefined && (await commitAndWipe(this.#store, transaction)) !== undefined;
      return isWritten ? record.minAvailableVersion : undefined;
    });
  }

  /** Returns the last version of the deleted key; undefined if nothing was deleted. @throws TransitError `deletion_not_allowed` */
  #deleteAsDue(place: DuePlace, mayDestroy: () => boolean): Promise<number | undefined> {
    return this.#changes.exclusively(place.name, async () => {
      const key = await this.#keys.key(place.name);
      // A restore of the cluster that is applied after this question conflicts, as in a removal of versions.
      if (!isDue('deletions', key, place) || !mayDestroy()) return undefined;
      const { latestVersion, deletionAllowed } = key.record;
      const transaction = deletionAllowed ? deleteKey(this.#paths, key) : endSchedule(this.#paths, key).transaction;
      const isWritten = transaction !== undefined && (await commitAndWipe(this.#store, transaction)) !== undefined;
      if (isWritten && !deletionAllowed) throw new TransitError('deletion_not_allowed', scheduleEnded);
      return isWritten ? latestVersion : undefined;
    });
  }

  /** Returns undefined if the key was deleted in the meantime. */
  async #newestView(name: string): Promise<KeyView | undefined> {
    const key = await this.#keys.key(name);
    return key && this.#views.of(key);
  }
}

const scheduleEnded = 'its deletion_allowed is false: the schedule ended, and the key stays soft-deleted';
const notFound = (name: string): string => `no existing key named ${name} could be found`;

/** The write itself is the signal; its value is not read. */
const reloadMark = Uint8Array.of(1);
