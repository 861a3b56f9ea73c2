import type { Store } from '@transitd/storage-fsm';
import { DamagedRecord } from '../errors.ts';
import { parseObject } from './key-record.ts';
import type { Paths } from './paths.ts';

/** Settings that concern all keys of the mount. */
export interface KeysConfig {
  /** Encrypting with an unknown key no longer makes one. */
  readonly disableUpsert: boolean;
}

const formatVersion = 1;

/** As written, or the default: keys are made on the way. */
export async function readKeysConfig(store: Store, paths: Paths): Promise<KeysConfig> {
  const stored = await store.get(paths.keysConfig);
  if (stored === undefined) return { disableUpsert: false };
  const { format, disableUpsert } = parseObject(stored.value);
  if (format !== formatVersion || typeof disableUpsert !== 'boolean') {
    throw new DamagedRecord('the keys configuration has a format that this program does not know');
  }
  return { disableUpsert };
}

export async function writeKeysConfig(store: Store, paths: Paths, { disableUpsert }: KeysConfig): Promise<void> {
  const value = Buffer.from(JSON.stringify({ format: formatVersion, disableUpsert }));
  await store.commit({ conditions: [], writes: [{ path: paths.keysConfig, value }] });
}
