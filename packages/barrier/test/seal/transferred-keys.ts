import type { Store } from '@transitd/storage-fsm';
import { type Barrier, type ForeignKeys, transferredPaths } from '../../src/index.ts';

/** Returns the keys of a cluster as a secondary receives them. */
export async function keysOf({ barrier, store }: { readonly barrier: Barrier; readonly store: Store }): Promise<ForeignKeys> {
  const records = new Map<string, Uint8Array>();
  for (const path of transferredPaths) {
    const record = await store.get(path);
    if (record !== undefined) records.set(path, record.value);
  }
  return { rootKey: await barrier.transfer.rootKey(), records };
}

/** Returns the keys with another value of one record, or without it. */
export function withRecord(keys: ForeignKeys, path: string, value: Uint8Array | undefined): ForeignKeys {
  const records = new Map([...keys.records].filter(([other]) => other !== path));
  if (value !== undefined) records.set(path, value);
  return { ...keys, records };
}
