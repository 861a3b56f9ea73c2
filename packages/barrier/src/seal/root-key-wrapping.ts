import { BarrierError } from '../records/errors.ts';
import { sealPath } from '../records/paths.ts';
import type { SealConfig, ShareCounts, StaticKey } from './seal-config.ts';
import { closeSeal, openSeal, type SealRecord } from './seal-record.ts';
import { hashShare, type ShareCollection, type SharedKey } from './shares.ts';

/**
 * Returns the seal's record for new shares. With a Shamir seal the shares carry the wrapping key; with a static seal the configured key
 * wraps the root key, and the shares only authorize.
 */
export function wrapRootKey(
  seal: SealConfig,
  { shares, threshold }: ShareCounts,
  shared: SharedKey,
  rootKey: Uint8Array,
): Buffer {
  const terms = { type: seal.type, shares, threshold, shareHashes: shared.shares.map(hashShare) };
  return seal.type === 'shamir'
    ? closeSeal({ ...terms, keyId: '' }, shared.key, rootKey)
    : closeSeal({ ...terms, keyId: seal.current.id }, seal.current.key, rootKey);
}

/** Unwraps the root key with enough shares; the caller wipes it. @throws BarrierError `barrier_corrupt` */
export async function unwrapByShares(record: SealRecord, shares: ShareCollection): Promise<Buffer> {
  const key = await shares.combine();
  const rootKey = openSeal(record, key);
  key.fill(0);
  if (rootKey === undefined)
    throw new BarrierError('barrier_corrupt', `the key from these shares does not open the record ${sealPath}`);
  return rootKey;
}

/**
 * Unwraps the root key with the configured key that the record names; the caller wipes it.
 * @throws BarrierError `seal_mismatch`, `barrier_corrupt`
 */
export function unwrapByStaticKey(seal: SealConfig, record: SealRecord): Buffer {
  const key = staticKey(seal, record.keyId);
  const rootKey = openSeal(record, key.key);
  if (rootKey === undefined)
    throw new BarrierError('barrier_corrupt', `the seal key "${key.id}" does not open the record ${sealPath}`);
  return rootKey;
}

/** Returns the configured key with this id, current or previous. @throws BarrierError `seal_mismatch` */
export function staticKey(seal: SealConfig, id: string): StaticKey {
  const keys = seal.type === 'static' ? [seal.current, seal.previous] : [];
  const key = keys.find((candidate) => candidate?.id === id);
  if (key === undefined) throw new BarrierError('seal_mismatch', `no seal key with the id "${id}" is configured`);
  return key;
}

/** Checks that the record has the configured seal type. @throws BarrierError `seal_mismatch`: changing the seal type is not supported */
export function requireSameType(seal: SealConfig, record: SealRecord): void {
  if (record.type === seal.type) return;
  const difference = `the data was sealed with type ${record.type}, the configuration says ${seal.type}`;
  throw new BarrierError('seal_mismatch', `${difference}; changing the seal type is not supported`);
}
