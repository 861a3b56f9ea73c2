import type { Write } from '@transitd/storage-fsm';
import type { Keyring } from '../keyring/keyring.ts';
import { decryptValue, encryptValue, type TermKey, termOf } from '../keyring/value.ts';
import { unsealKeyPath } from '../records/paths.ts';
import type { SealConfig } from './seal-config.ts';
import { openSeal, type SealRecord } from './seal-record.ts';
import type { SharedKey } from './shares.ts';

/**
 * Returns the writes that store the key of new shares, which the leader needs for joins. They belong in the transaction that puts the
 * shares in force. A static seal has no such writes, because its shares carry no key.
 */
export const unsealKeyWrites = (seal: SealConfig, term: TermKey, { key }: SharedKey): readonly Write[] =>
  seal.type === 'shamir' ? [{ path: unsealKeyPath, value: encryptValue(term, unsealKeyPath, key) }] : [];

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
