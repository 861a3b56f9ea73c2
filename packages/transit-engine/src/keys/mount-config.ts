import type { Store } from '@transitd/storage-fsm';
import { parseJsonObject } from '../formats/json-object.ts';
import { DamagedRecord, TransitError } from '../values/errors.ts';
import type { Paths } from './paths.ts';

/** Settings of all keys of the mount. */
export interface KeysConfig {
  /** Encrypting under an unknown key does not create it. */
  readonly disableUpsert: boolean;
}

/** Maximum number of decoded keys in the cache; 0 for no maximum. The memory of the cache is bounded in any case. */
export interface CacheConfig {
  readonly size: number;
}

const formatVersion = 1;
/** A smaller cache would evict keys all the time. */
const cacheSizeMin = 10;

/** Returns the stored settings, or the default: encrypting under an unknown key creates it. */
export async function readKeysConfig(store: Store, paths: Paths): Promise<KeysConfig> {
  const stored = await store.get(paths.keysConfig);
  if (stored === undefined) return { disableUpsert: false };
  const { format, disableUpsert } = parseJsonObject(stored.value);
  if (format !== formatVersion || typeof disableUpsert !== 'boolean') {
    throw new DamagedRecord('the keys configuration has an unknown format');
  }
  return { disableUpsert };
}

export async function writeKeysConfig(store: Store, paths: Paths, { disableUpsert }: KeysConfig): Promise<void> {
  const value = Buffer.from(JSON.stringify({ format: formatVersion, disableUpsert }));
  await store.commit({ conditions: [], writes: [{ path: paths.keysConfig, value }] });
}

/** Returns the stored settings, or the default: no maximum number of keys. */
export async function readCacheConfig(store: Store, paths: Paths): Promise<CacheConfig> {
  const stored = await store.get(paths.cacheConfig);
  if (stored === undefined) return { size: 0 };
  const { format, size } = parseJsonObject(stored.value);
  if (format !== formatVersion || typeof size !== 'number') {
    throw new DamagedRecord('the cache configuration has an unknown format');
  }
  return { size };
}

/** @throws TransitError `invalid_request` */
export async function writeCacheConfig(store: Store, paths: Paths, { size }: CacheConfig): Promise<void> {
  if (size !== 0 && size < cacheSizeMin) {
    throw new TransitError('invalid_request', `size must be 0 or a value greater or equal to ${cacheSizeMin}`);
  }
  const value = Buffer.from(JSON.stringify({ format: formatVersion, size }));
  await store.commit({ conditions: [], writes: [{ path: paths.cacheConfig, value }] });
}
