import { isDeepStrictEqual } from 'node:util';
import type { Store, StoredRecord } from '@transitd/storage-fsm';
import { BarrierError } from '../records/errors.ts';
import { keyringPath, sealPath } from '../records/paths.ts';
import { decodeSeal, type SealRecord } from './seal-record.ts';

/** The decoded record `core/seal` and its revision. */
export interface StoredSeal {
  readonly record: SealRecord;
  readonly revision: number;
}

/**
 * Returns whether both are the same seal. The revision alone does not show it: clusters that share a seal have that of their primary, with
 * an index of the primary as its revision, which may by chance be that of the former seal.
 */
export const isSameSealRecord = (one: StoredSeal | undefined, other: StoredSeal | undefined): boolean =>
  one?.revision === other?.revision && isDeepStrictEqual(one?.record, other?.record);

/** Reads `core/seal`; returns undefined before initialization. @throws BarrierError `barrier_corrupt`; StoreError */
export async function readSeal(store: Store): Promise<StoredSeal | undefined> {
  const stored = await store.get(sealPath);
  return stored && { record: decodeSeal(stored.value), revision: stored.revision };
}

/**
 * Reads the seal and the keyring as they were at one moment. A rekey changes both; if one happens between the reads, the seal
 * differs, and both are read again.
 * @throws BarrierError `not_initialized`, `barrier_corrupt`; StoreError
 */
export async function readCore(store: Store): Promise<{ readonly seal: StoredSeal; readonly keyring: StoredRecord }> {
  for (;;) {
    const seal = await readSeal(store);
    if (seal === undefined) throw new BarrierError('not_initialized', 'transitd is not initialized');
    const keyring = await store.get(keyringPath);
    if (!isSameSealRecord(await readSeal(store), seal)) continue;
    if (keyring === undefined) throw new BarrierError('barrier_corrupt', `the record ${keyringPath} is missing`);
    return { seal, keyring };
  }
}
