import { createSecretKey, type KeyObject } from 'node:crypto';
import { type Changes, type Store, StoreError } from '@transitd/storage-fsm';
import { LRUCache } from 'lru-cache';
import { type CmacKey, cmacKey } from '../algorithms/cmac.ts';
import { hkdfExtract } from '../algorithms/kdf.ts';
import { uuidText } from '../formats/uuid.ts';
import type { KeyPair, KeyPairBytes, KeyPairScheme } from '../key-pairs/key-pair.ts';
import type { BoundManagedKey } from '../managed/provider.ts';
import { DamagedRecord } from '../values/errors.ts';
import { wipe } from '../values/secrets.ts';
import type { BudgetedCache, CacheBudget } from './cache-budget.ts';
import type { StoredKey } from './key.ts';
import { decodeKeyRecord, type KeyRecord } from './key-record.ts';
import { fitsVersion, type KeyType, keyType } from './key-type.ts';
import { type KeyView, keyView, type VersionView } from './key-view.ts';
import { isKeyName, type Paths } from './paths.ts';
import { type ConvergentVersion, convergenceOf, decodeVersionRecord, type VersionRecord } from './version-record.ts';

/** A decoded key with the versions that have been used. */
export interface LoadedKey extends StoredKey {
  readonly type: KeyType;
  readonly versions: Map<number, LoadedVersion>;
  /** The view for readers, once one was requested, and its approximate size in bytes. */
  cachedView?: { readonly view: KeyView; readonly bytes: number };
}

/** A decoded version: native handles. */
export interface LoadedVersion {
  /**
   * The AEAD key or, on a derived key, the key from which the keys of contexts are derived; on types without an AEAD, the material. Absent
   * if `pair` or `managed` is present.
   */
  readonly key?: KeyObject;
  /** Present on key pairs that are not derived. */
  readonly pair?: KeyPair;
  /** Present on managed keys. */
  readonly managed?: BoundManagedKey;
  readonly hmacKey: KeyObject;
  /** Present on types that make CMACs. */
  readonly cmacKey?: CmacKey;
  /** Relevant for convergent keys only. */
  readonly convergentVersion: ConvergentVersion;
}

/** A version's record is missing. If the key has not changed since it was loaded, the record is lost. */
export class VersionGone extends DamagedRecord {}

const sealed = (): Error => new StoreError('sealed', 'transitd is sealed');

/** Estimated bytes of a key and of each version, native memory and heap. */
const [perKeyBytes, perVersionBytes, perPairBytes] = [2048, 2048, 16_384];
/** Estimated bytes of each version in a view, without its texts. */
const perShownVersionBytes = 512;

/**
 * Decoded keys by name. Applying a change of a key's record drops the entry in the same step, so an entry is never older than an
 * answer of this node. Version records need no watch: each is written or deleted together with, or after, a change of its key's
 * record.
 */
export class KeyCache implements BudgetedCache {
  readonly #store: Store;
  readonly #paths: Paths;
  readonly #budget: CacheBudget;
  #entries: LRUCache<string, LoadedKey>;
  /**
   * Loads in progress. A change removes the load of its key from this map: the load still serves callers that already wait for it, but no
   * new callers.
   */
  readonly #loads = new Map<string, Promise<LoadedKey | undefined>>();
  /** Keys whose change is being committed, and the revisions of the changes that were applied to them meanwhile. */
  readonly #committing = new Map<string, number[]>();
  readonly #unwatch: () => void;
  /** Makes the error for callers after {@link close}. */
  #refusal: (() => Error) | undefined;

  /** @param budget - memory for the keys of all mounts */
  constructor(store: Store, paths: Paths, budget: CacheBudget) {
    this.#store = store;
    this.#paths = paths;
    this.#budget = budget;
    this.#entries = entriesWithin(budget, 0);
    budget.add(this);
    this.#unwatch = store.watch(paths.keys, (changes) => this.#drop(changes));
  }

  get bytes(): number {
    return this.#entries.calculatedSize;
  }

  giveUp(): void {
    this.#entries.pop();
  }

  /** Returns the key if it is cached. */
  cached(name: string): LoadedKey | undefined {
    return this.#entries.get(name);
  }

  /** Returns the key from the cache or the store; undefined if none of that name exists. */
  async key(name: string): Promise<LoadedKey | undefined> {
    return this.#entries.get(name) ?? (await this.#load(name));
  }

  /**
   * Loads a version that is not cached.
   * @throws VersionGone when the store no longer has it
   */
  async loadVersion(key: LoadedKey, version: number): Promise<LoadedVersion> {
    const stored = await this.#store.get(this.#paths.version({ keyId: key.record.id, version }));
    if (stored === undefined) throw new VersionGone(`version ${version} of a key is missing`);
    try {
      const loaded = loadedVersion(key, decodeVersionRecord(stored.value));
      key.versions.set(version, loaded);
      this.#updateSize(key);
      return loaded;
    } finally {
      wipe([stored]);
    }
  }

  /** Caches a key's view. It stays valid as long as the entry, because all of its content changes with the key's record. */
  keepView(key: LoadedKey, view: KeyView): void {
    const bytes = viewBytes(view);
    if (sizeOf(key) + bytes > this.#entries.maxSize) return;
    key.cachedView = { view, bytes };
    this.#updateSize(key);
  }

  /**
   * Runs the commit of a change, and caches the changed key unless it was changed again meanwhile, here or by another node. Changes of one
   * key are committed one after the other.
   * @param commit - returns the revision, or undefined on a conflict
   * @param versions - those that the changed key's view shows
   * @returns the view of the changed key, or undefined on a conflict
   */
  async keepChanged(
    { name, record }: Pick<StoredKey, 'name' | 'record'>,
    versions: readonly VersionView[],
    commit: () => Promise<number | undefined>,
  ): Promise<KeyView | undefined> {
    const applied: number[] = [];
    this.#committing.set(name, applied);
    try {
      const revision = await commit();
      if (revision === undefined) return undefined;
      const key = loadedKey(name, record, revision);
      const view = keyView(key, versions);
      key.cachedView = { view, bytes: viewBytes(view) };
      const isNewest = this.#committing.get(name) === applied && applied.length === 1 && applied[0] === revision;
      if (isNewest) this.#set(key);
      return view;
    } finally {
      if (this.#committing.get(name) === applied) this.#committing.delete(name);
    }
  }

  /** Changes the size of the cache and empties it. @param keysMax - maximum number of keys; 0 for no maximum */
  resize(keysMax: number): void {
    this.#entries = entriesWithin(this.#budget, keysMax);
  }

  /** @throws the error given to {@link close}, once closed: the result of an operation in progress must not be answered */
  assertOpen(): void {
    if (this.#refusal !== undefined) throw this.#refusal();
  }

  /** Drops every key and caches nothing from now on. */
  close(refusal = sealed): void {
    this.#refusal = refusal;
    this.#unwatch();
    this.#budget.remove(this);
    this.#loads.clear();
    this.#committing.clear();
    this.#entries.clear();
  }

  #load(name: string): Promise<LoadedKey | undefined> {
    if (this.#refusal !== undefined) return this.#read(name);
    const loading = this.#loads.get(name);
    if (loading !== undefined) return loading;
    const load = this.#read(name).then((key) => {
      if (key !== undefined && this.#loads.get(name) === load) this.#set(key);
      return key;
    });
    this.#loads.set(name, load);
    const ended = (): void => {
      if (this.#loads.get(name) === load) this.#loads.delete(name);
    };
    load.then(ended, ended);
    return load;
  }

  async #read(name: string): Promise<LoadedKey | undefined> {
    if (!isKeyName(name)) return undefined;
    const stored = await this.#store.get(this.#paths.key(name));
    return stored && loadedKey(name, decodeKeyRecord(stored.value), stored.revision);
  }

  #drop(changes: Changes): void {
    if (changes === 'everything') {
      this.#entries.clear();
      this.#loads.clear();
      this.#committing.clear();
      return;
    }
    for (const { path, revision } of changes) {
      const name = path.slice(this.#paths.keys.length);
      this.#entries.delete(name);
      this.#loads.delete(name);
      this.#committing.get(name)?.push(revision);
    }
  }

  /** Updates the size of an entry. The cache measures entries when they are set, but ignores setting the same object again. */
  #updateSize(key: LoadedKey): void {
    if (this.#entries.peek(key.name) !== key) return;
    this.#entries.delete(key.name);
    this.#set(key);
  }

  /** Caches the key; without its view, if both do not fit. */
  #set(key: LoadedKey): void {
    if (sizeOf(key) > this.#entries.maxSize) delete key.cachedView;
    this.#entries.set(key.name, key);
    this.#budget.grew(this);
  }
}

const entriesWithin = ({ bytesMax }: CacheBudget, keysMax: number): LRUCache<string, LoadedKey> =>
  new LRUCache({
    // The cache allocates space for `max` entries, so `max` is at most the number that fits.
    ...(keysMax > 0 && { max: Math.min(keysMax, Math.ceil(bytesMax / perKeyBytes)) }),
    maxSize: bytesMax,
    sizeCalculation: sizeOf,
  });

const sizeOf = ({ type, versions, cachedView }: LoadedKey): number =>
  perKeyBytes + versions.size * (type.keyPair === undefined ? perVersionBytes : perPairBytes) + (cachedView?.bytes ?? 0);

/** The texts of a view count twice, because cached responses contain them too. */
const viewBytes = ({ versions }: KeyView): number =>
  versions.reduce(
    (sum, { pair }) =>
      sum +
      perShownVersionBytes +
      2 * (pair ? pair.publicKey.length + pair.hybridPublicKey.length + pair.certificateChain.length : 0),
    0,
  );

/** Returns a decoded key without versions. */
export const loadedKey = (name: string, record: KeyRecord, revision: number): LoadedKey => ({
  name,
  record,
  revision,
  type: keyType(record.type),
  versions: new Map(),
});

/** @throws DamagedRecord when the material does not fit the key's type */
export function loadedVersion(
  { record, type }: Pick<LoadedKey, 'record' | 'type'>,
  version: Omit<VersionRecord, 'keyName' | 'createdMs'>,
): LoadedVersion {
  const { material, publicKey, hmacSecret } = version;
  if (!fitsVersion(type, version)) throw new DamagedRecord('a version record does not fit its key');
  const convergentVersion = convergenceOf(record, version);
  if (type.keyPair !== undefined && publicKey !== undefined && !record.derived) {
    const pair = loadedPair(type.keyPair, { material, publicKey });
    return { pair, hmacKey: createSecretKey(hmacSecret), convergentVersion };
  }
  if (type.managed) {
    const managed = { id: uuidText(material), ...(publicKey && { publicKey: Uint8Array.from(publicKey) }) };
    return { managed, hmacKey: createSecretKey(hmacSecret), convergentVersion };
  }
  const key = record.derived && record.kdf === 'hkdf_sha256' ? hkdfExtract(material) : createSecretKey(material);
  return {
    key,
    hmacKey: type.materialIsHmacSecret ? key : createSecretKey(hmacSecret),
    ...(type.cmac && { cmacKey: cmacKey(type.cmac, key) }),
    convergentVersion,
  };
}

function loadedPair(scheme: KeyPairScheme, bytes: KeyPairBytes): KeyPair {
  try {
    return scheme.load(bytes);
  } catch {
    throw new DamagedRecord('a version record holds no key pair'); // the parser's message could quote the key
  }
}
