import { createSecretKey, type KeyObject } from 'node:crypto';
import { type Changes, type Store, StoreError } from '@transitd/storage-fsm';
import { LRUCache } from 'lru-cache';
import { type CmacKey, cmacKey } from '../algorithms/cmac.ts';
import { hkdfExtract } from '../algorithms/kdf.ts';
import { DamagedRecord } from '../errors.ts';
import { uuidText } from '../formats/uuid.ts';
import type { KeyPair, KeyPairBytes, KeyPairScheme } from '../key-pairs/key-pair.ts';
import type { BoundManagedKey } from '../managed/provider.ts';
import { wipe } from '../secrets.ts';
import type { StoredKey } from './key.ts';
import { decodeKeyRecord, type KeyRecord } from './key-record.ts';
import { fitsVersion, type KeyType, keyType } from './key-type.ts';
import type { KeyView } from './key-view.ts';
import { isKeyName, type Paths } from './paths.ts';
import { type ConvergentVersion, convergenceOf, decodeVersionRecord, type VersionRecord } from './version-record.ts';

/** A key ready for use, with those of its versions that were used already. */
export interface LoadedKey extends StoredKey {
  readonly type: KeyType;
  readonly versions: Map<number, LoadedVersion>;
  /** What its readers see, once one has asked, and how many bytes that takes up, about. */
  cachedView?: { readonly view: KeyView; readonly bytes: number };
}

/** A version's handles. */
export interface LoadedVersion {
  /**
   * The AEAD key itself or, on a derived key, what each context's key is derived from; on types without an AEAD, the material. Absent where
   * `pair` or `managed` is there.
   */
  readonly key?: KeyObject;
  /** On key pairs that are not derived. */
  readonly pair?: KeyPair;
  /** On managed keys, which have no other key. */
  readonly managed?: BoundManagedKey;
  readonly hmacKey: KeyObject;
  /** On types that make CMACs. */
  readonly cmacKey?: CmacKey;
  /** Counts on convergent keys only. */
  readonly convergentVersion: ConvergentVersion;
}

/** A version's record is not there. Either the key has changed since it was loaded, or, if it has not, the record is lost. */
export class VersionGone extends DamagedRecord {}

/** How much is kept. */
export interface CacheLimits {
  /** Keys at most; 0 sets no number. */
  readonly entries: number;
  /** Bytes at most, about, whatever the number of keys. */
  readonly bytes: number;
}

const sealed = (): Error => new StoreError('sealed', 'transitd is sealed');

/** What a key and each of its versions take up, natively and in the heap, in bytes; an estimate. */
const [perKeyBytes, perVersionBytes, perPairBytes] = [2048, 2048, 16_384];
/** The same of each version in a view, beside its texts. */
const perShownVersionBytes = 512;

/**
 * Decoded keys by name. An entry is dropped within the apply of any change to the key's record, so it is never older than what
 * this node has answered. That suffices for versions too: a version's record is written and deleted only together with, or
 * after, a change of its key's record.
 */
export class KeyCache {
  readonly #store: Store;
  readonly #paths: Paths;
  #entries: LRUCache<string, LoadedKey>;
  /** Loads under way. One that a change overtakes is taken out: it may answer who waits for it already, and nobody else. */
  readonly #loads = new Map<string, Promise<LoadedKey | undefined>>();
  readonly #unwatch: () => void;
  /** What is said to whoever comes after {@link close}. */
  #refusal: (() => Error) | undefined;

  constructor(store: Store, paths: Paths, limits: CacheLimits) {
    this.#store = store;
    this.#paths = paths;
    this.#entries = entriesWithin(limits);
    this.#unwatch = store.watch(paths.keys, (changes) => this.#drop(changes));
  }

  /** The key if it is at hand: no wait, no store. */
  cached(name: string): LoadedKey | undefined {
    return this.#entries.get(name);
  }

  /** The key, from memory or from the store; undefined when there is none of that name. */
  async key(name: string): Promise<LoadedKey | undefined> {
    return this.#entries.get(name) ?? (await this.#load(name));
  }

  /**
   * A version that is not at hand yet.
   * @throws VersionGone when the store does not hold it any more
   */
  async loadVersion(key: LoadedKey, version: number): Promise<LoadedVersion> {
    const stored = await this.#store.get(this.#paths.version({ keyId: key.record.id, version }));
    if (stored === undefined) throw new VersionGone(`version ${version} of a key is gone`);
    try {
      const loaded = loadedVersion(key, decodeVersionRecord(stored.value));
      key.versions.set(version, loaded);
      this.#measureAgain(key);
      return loaded;
    } finally {
      wipe([stored]);
    }
  }

  /** What readers of the key see is not made again while the key stays: it is all in records that change with it. */
  keepView(key: LoadedKey, view: KeyView): void {
    const bytes = viewBytes(view);
    if (sizeOf(key) + bytes > this.#entries.maxSize) return;
    key.cachedView = { view, bytes };
    this.#measureAgain(key);
  }

  /** How much is kept from now on. What is kept already is forgotten, and comes back as it is used. */
  resize(limits: CacheLimits): void {
    this.#entries = entriesWithin(limits);
  }

  /** @throws the refusal given to {@link close} after it: whoever holds a key still is not to answer what was done with it */
  assertOpen(): void {
    if (this.#refusal !== undefined) throw this.#refusal();
  }

  /** Forgets every key; from now on nothing is kept. */
  close(refusal = sealed): void {
    this.#refusal = refusal;
    this.#unwatch();
    this.#loads.clear();
    this.#entries.clear();
  }

  #load(name: string): Promise<LoadedKey | undefined> {
    if (this.#refusal !== undefined) return this.#read(name);
    const underWay = this.#loads.get(name);
    if (underWay !== undefined) return underWay;
    const load = this.#read(name).then((key) => {
      if (key !== undefined && this.#loads.get(name) === load) this.#entries.set(name, key);
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
      return;
    }
    for (const { path } of changes) {
      const name = path.slice(this.#paths.keys.length);
      this.#entries.delete(name);
      this.#loads.delete(name);
    }
  }

  /** The cache sizes an entry when it is set, and setting the same object again would not count. */
  #measureAgain(key: LoadedKey): void {
    if (this.#entries.peek(key.name) !== key) return;
    this.#entries.delete(key.name);
    this.#entries.set(key.name, key);
  }
}

const entriesWithin = ({ entries, bytes }: CacheLimits): LRUCache<string, LoadedKey> =>
  new LRUCache({
    // Room is set aside for `max` entries, so it is no more than fit.
    ...(entries > 0 && { max: Math.min(entries, Math.ceil(bytes / perKeyBytes)) }),
    maxSize: bytes,
    sizeCalculation: sizeOf,
  });

const sizeOf = ({ type, versions, cachedView }: LoadedKey): number =>
  perKeyBytes + versions.size * (type.keyPair === undefined ? perVersionBytes : perPairBytes) + (cachedView?.bytes ?? 0);

/** A view's texts are there twice: here, and in what answers are made of. */
const viewBytes = ({ versions }: KeyView): number =>
  versions.reduce(
    (sum, { pair }) =>
      sum +
      perShownVersionBytes +
      2 * (pair ? pair.publicKey.length + pair.hybridPublicKey.length + pair.certificateChain.length : 0),
    0,
  );

/** A key without any version at hand. */
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
    throw new DamagedRecord('a version record holds no key pair'); // the parser's own message could quote it
  }
}
