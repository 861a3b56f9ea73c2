import { timingSafeEqual } from 'node:crypto';
import type { Store } from '@transitd/storage-fsm';
import type { Keys } from '../keyring/loaded-keys.ts';
import { BarrierError } from '../records/errors.ts';
import { sealPath, unsealKeyPath } from '../records/paths.ts';
import type { StoredSeal } from './core-records.ts';
import { staticKey } from './root-key-wrapping.ts';
import { type SealConfig, sealOf } from './seal-config.ts';
import { openSeal, type SealRecord } from './seal-record.ts';
import { openUnsealKey } from './unseal-key.ts';

export interface OwnRecordParts {
  readonly store: Pick<Store, 'get'>;
  readonly seal: SealConfig;
  /** The present keys. @throws StoreError `sealed` */
  readonly keys: () => Keys;
}

/**
 * Checks that a holder of the seal's key wrote this record, for the present root key. The record is stored in plaintext. So whoever can
 * write below the barrier, such as a user of etcd, could name recovery shares of their own in it, or bring back the record from before a
 * rekey. Recovery shares open nothing: only this check makes them prove anything. The shares of a Shamir seal prove themselves, because
 * they open the root key.
 * @returns false if another record has replaced this one in the meantime
 * @throws BarrierError `barrier_corrupt` for a record of somebody else; `seal_mismatch` if this node's configuration lacks the seal or its
 * static key; StoreError
 */
export async function requireOwnRecord({ record, revision }: StoredSeal, parts: OwnRecordParts): Promise<boolean> {
  if (await isOwn(record, parts)) return true;
  if ((await parts.store.get(sealPath))?.revision !== revision) return false;
  throw notOwnRecord();
}

export const notOwnRecord = (): BarrierError =>
  new BarrierError(
    'barrier_corrupt',
    `the record ${sealPath} was not written for the present root key by a node of this cluster: restore a backup`,
  );

async function isOwn(record: SealRecord, parts: OwnRecordParts): Promise<boolean> {
  const key = await wrappingKeyOf(record, parts);
  if (key === undefined) return false;
  const rootKey = openSeal(record, key);
  key.fill(0);
  const isPresent = rootKey !== undefined && timingSafeEqual(rootKey, parts.keys().rootKey);
  rootKey?.fill(0);
  return isPresent;
}

/** Returns the key that wraps the root key, which the caller wipes; undefined if the barrier has no such key for this record. */
async function wrappingKeyOf(record: SealRecord, { store, seal, keys }: OwnRecordParts): Promise<Buffer | undefined> {
  const configured = sealOf(seal, record);
  if (record.type === 'static') return Buffer.from(staticKey(configured, record.keyId).key);
  const kept = await store.get(unsealKeyPath);
  return kept && openUnsealKey(keys().keyring, record, kept.value);
}
