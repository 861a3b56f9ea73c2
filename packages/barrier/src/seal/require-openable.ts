import { openKeyring, wipeKeyring } from '../keyring/keyring.ts';
import { BarrierError } from '../records/errors.ts';
import { keyringPath, sealPath } from '../records/paths.ts';
import { requireSameType, unwrapByStaticKey } from './root-key-wrapping.ts';
import type { SealConfig } from './seal-config.ts';
import { decodeSeal } from './seal-record.ts';

/** The paths of the records that {@link requireOpenable} needs. */
export const sealRecordPaths = [sealPath, keyringPath] as const;

/**
 * Checks, before a restore replaces the state, that this node can unseal a state with these records: the seal has the same type, and a
 * configured static key opens it. Whether operators hold the shares of a Shamir seal cannot be checked.
 * @param records - the values of the records, by path
 * @throws BarrierError `seal_mismatch`, `barrier_corrupt`
 */
export function requireOpenable(seal: SealConfig, records: ReadonlyMap<string, Uint8Array>): void {
  const [sealRecord, keyring] = [records.get(sealPath), records.get(keyringPath)];
  if (sealRecord === undefined || keyring === undefined)
    throw new BarrierError('barrier_corrupt', `the record ${sealRecord === undefined ? sealPath : keyringPath} is missing`);
  const record = decodeSeal(sealRecord);
  requireSameType(seal, record);
  if (record.type !== 'static') return;
  const rootKey = unwrapByStaticKey(seal, record);
  const opened = openKeyring(rootKey, keyring);
  rootKey.fill(0);
  if (opened === undefined) throw new BarrierError('barrier_corrupt', `its root key does not open the record ${keyringPath}`);
  wipeKeyring(opened);
}
