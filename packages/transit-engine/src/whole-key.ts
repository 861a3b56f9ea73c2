import { TransitError } from './errors.ts';
import { checkAutoRotatePeriod, checkDerivable, checkMinimums, type FreshVersion } from './key.ts';
import type { KeyRecord } from './key-record.ts';
import { fitsType, keyType } from './key-type.ts';
import { isKeyName } from './paths.ts';

/** A key with all its versions, outside of any store. */
export interface WholeKey {
  readonly name: string;
  readonly record: Omit<KeyRecord, 'id'>;
  /** Ascending, without a gap, up to the latest. */
  readonly versions: readonly (FreshVersion & { readonly version: number })[];
}

const hmacSecretBytes = 32;

/** Refuses what no store of this program would hold: the rules of creation, import and configuration. @throws TransitError `invalid_request` */
export function checkWhole({ name, record, versions }: WholeKey): void {
  const type = keyType(record.type);
  const { latestVersion, minAvailableVersion, minDecryptionVersion, minEncryptionVersion, keySize } = record;
  if (!isKeyName(name)) throw invalidBackup('its name cannot name a key');
  const numbers = [latestVersion, minAvailableVersion, minDecryptionVersion, minEncryptionVersion, record.autoRotatePeriodS];
  if (!numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) throw invalidBackup('a number is out of range');
  if (minDecryptionVersion < 1 || minDecryptionVersion > latestVersion || minEncryptionVersion > latestVersion) {
    throw invalidBackup('its minimum versions do not fit its versions');
  }
  checkMinimums(record);
  checkAutoRotatePeriod(record.autoRotatePeriodS);
  if (record.derived) checkDerivable(type);
  if (record.convergent && !record.derived) throw invalidBackup('convergent encryption requires derivation to be enabled');
  const first = Math.max(minAvailableVersion, 1);
  if (versions.length !== latestVersion - first + 1) throw invalidBackup('a version is missing');
  const latest = versions.at(-1);
  if (latest?.createdMs !== record.latestCreatedMs)
    throw invalidBackup('the time of its latest version is not that of its settings');
  if (keySize !== (type.sizes === undefined ? 0 : latest.material.length))
    throw invalidBackup('its key size is not that of its latest version');
  for (const [index, { version, createdMs, material, hmacSecret, convergentVersion }] of versions.entries()) {
    const secretFits = hmacSecret.length === (type.materialIsHmacSecret ? 0 : hmacSecretBytes);
    const convergence = convergentVersion ?? (record.convergentVersion === -1 ? 3 : record.convergentVersion);
    if (version !== first + index) throw invalidBackup('a version is missing');
    if (!Number.isSafeInteger(createdMs) || createdMs < 0) throw invalidBackup(`version ${version} has no time`);
    if (!fitsType(type, material.length) || !secretFits) throw invalidBackup(`version ${version} does not fit the key's type`);
    if (record.convergent && convergence === 3 && record.kdf !== 'hkdf_sha256') {
      throw invalidBackup(`version ${version} cannot derive a nonce with the key derivation of its key`);
    }
  }
}

export const invalidBackup = (reason: string): TransitError =>
  new TransitError('invalid_request', `the backup cannot be restored: ${reason}`);
