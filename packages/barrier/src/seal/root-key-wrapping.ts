import { BarrierError } from '../errors.ts';
import { sealPath } from '../paths.ts';
import type { SealConfig, ShareCounts, StaticKey } from './seal-config.ts';
import { closeSeal, openSeal, type SealRecord } from './seal-record.ts';
import { hashShare, type ShareCollection, type SharedKey } from './shares.ts';

/** The seal's record for new shares: they carry the wrapping key (shamir), or the configured key wraps and they only authorise (static). */
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

/** The root key, by enough shares; the caller wipes it. @throws BarrierError `barrier_corrupt` */
export async function unwrapByShares(record: SealRecord, shares: ShareCollection): Promise<Buffer> {
  const key = await shares.combine();
  const rootKey = openSeal(record, key);
  key.fill(0);
  if (rootKey === undefined)
    throw new BarrierError('barrier_corrupt', `the key of these shares does not open the record ${sealPath}`);
  return rootKey;
}

/** The root key, by the configured key of the record's id; the caller wipes it. @throws BarrierError `seal_mismatch`, `barrier_corrupt` */
export function unwrapByStaticKey(seal: SealConfig, record: SealRecord): Buffer {
  const key = staticKey(seal, record.keyId);
  const rootKey = openSeal(record, key.key);
  if (rootKey === undefined)
    throw new BarrierError('barrier_corrupt', `the seal key "${key.id}" does not open the record ${sealPath}`);
  return rootKey;
}

/** The configured key of that id, current or previous. @throws BarrierError `seal_mismatch` */
export function staticKey(seal: SealConfig, id: string): StaticKey {
  const keys = seal.type === 'static' ? [seal.current, seal.previous] : [];
  const key = keys.find((candidate) => candidate?.id === id);
  if (key === undefined) throw new BarrierError('seal_mismatch', `no seal key with the id "${id}" is configured`);
  return key;
}

/** @throws BarrierError `seal_mismatch`: moving between types of seal is not supported */
export function requireSameType(seal: SealConfig, record: SealRecord): void {
  if (record.type === seal.type) return;
  const difference = `the data was sealed with type ${record.type}, the configuration says ${seal.type}`;
  throw new BarrierError('seal_mismatch', `${difference}; a change of the seal's type is not supported`);
}
