import type { Keyring } from '../keyring/keyring.ts';
import { decryptValue, termOf } from '../keyring/value.ts';
import { unsealKeyPath } from '../records/paths.ts';
import { openSeal, type SealRecord } from './seal-record.ts';

/**
 * Decrypts the key in `core/unseal-key`, which the caller wipes. Returns undefined if it is not this seal's key, as after a rekey by a
 * release that did not store it, or if its term is not in the keyring.
 * @throws BarrierError `barrier_corrupt`
 */
export function openUnsealKey({ terms }: Keyring, record: SealRecord, stored: Uint8Array): Buffer | undefined {
  const term = terms.get(termOf(unsealKeyPath, stored));
  if (term === undefined) return undefined;
  const key = decryptValue(term, unsealKeyPath, stored);
  const rootKey = openSeal(record, key);
  rootKey?.fill(0);
  if (rootKey !== undefined) return key;
  key.fill(0);
  return undefined;
}
