import { openKeyring, wipeKeyring } from '../keyring/keyring.ts';
import { BarrierError } from '../records/errors.ts';
import { keyringPath, sealPath } from '../records/paths.ts';
import { sealKeyOf, unwrapBySealKey } from './root-key-wrapping.ts';
import { type SealConfig, sealOf } from './seal-config.ts';
import { decodeSeal } from './seal-record.ts';

/** The paths of the records that {@link requireOpenable} needs. */
export const sealRecordPaths = [sealPath, keyringPath] as const;

/**
 * Checks, before a restore replaces the state, that this node can unseal a state with these records: the seal has the same type, and a
 * configured static key or the provider opens it. Whether operators hold the shares of a Shamir seal cannot be checked.
 * @param records - the values of the records, by path
 * @throws BarrierError `seal_mismatch`, `barrier_corrupt`; ProviderError
 */
export async function requireOpenable(seal: SealConfig, records: ReadonlyMap<string, Uint8Array>): Promise<void> {
  const [sealRecord, keyring] = [records.get(sealPath), records.get(keyringPath)];
  if (sealRecord === undefined || keyring === undefined)
    throw new BarrierError('barrier_corrupt', `the record ${sealRecord === undefined ? sealPath : keyringPath} is missing`);
  const record = decodeSeal(sealRecord);
  const accepted = sealOf(seal, record);
  if (record.type === 'shamir') return;
  const sealKey = await sealKeyOf(accepted, record);
  try {
    requireKeyring(unwrapBySealKey(record, sealKey), keyring);
  } finally {
    sealKey.fill(0);
  }
}

function requireKeyring(rootKey: Buffer, keyring: Uint8Array): void {
  const opened = openKeyring(rootKey, keyring);
  rootKey.fill(0);
  if (opened === undefined) throw new BarrierError('barrier_corrupt', `its root key does not open the record ${keyringPath}`);
  wipeKeyring(opened);
}
