import type { Store } from '@transitd/storage-fsm';
import { DamagedRecord, TransitError } from '../errors.ts';
import { parseObject } from './key-record.ts';
import type { Paths } from './paths.ts';

/** How many decoded keys are kept: 0 sets no number, and the memory they take is bounded all the same. */
export interface CacheConfig {
  readonly size: number;
}

const formatVersion = 1;
/** A smaller cache would do nothing but evict. */
const sizeMin = 10;

/** As written, or the default: no number. */
export async function readCacheConfig(store: Store, paths: Paths): Promise<CacheConfig> {
  const stored = await store.get(paths.cacheConfig);
  if (stored === undefined) return { size: 0 };
  const { format, size } = parseObject(stored.value);
  if (format !== formatVersion || typeof size !== 'number') {
    throw new DamagedRecord('the cache configuration has a format that this program does not know');
  }
  return { size };
}

/** @throws TransitError `invalid_request` */
export async function writeCacheConfig(store: Store, paths: Paths, { size }: CacheConfig): Promise<void> {
  if (size !== 0 && size < sizeMin) {
    throw new TransitError('invalid_request', `size must be 0 or a value greater or equal to ${sizeMin}`);
  }
  const value = Buffer.from(JSON.stringify({ format: formatVersion, size }));
  await store.commit({ conditions: [], writes: [{ path: paths.cacheConfig, value }] });
}
