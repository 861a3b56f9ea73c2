import { TimeSlice } from '@transitd/event-loop';
import { agingSettings, checkAging } from '../keys/aging.ts';
import { checkAutoRotatePeriod, checkDerivation, checkRotatesByItself, type FreshVersion } from '../keys/key.ts';
import { disabledVersionsMax, isReason } from '../keys/key-availability.ts';
import { checkMinimums, checkMinMacLength } from '../keys/key-config.ts';
import type { KeyRecord } from '../keys/key-record.ts';
import { fitsVersion, keyType } from '../keys/key-type.ts';
import { isKeyName } from '../keys/paths.ts';
import { convergenceOf } from '../keys/version-record.ts';
import { TransitError } from '../values/errors.ts';
import { isStoredChain } from '../x509/certificate-chain.ts';

/** A key with all its versions, outside the store: the content of a backup. */
export interface KeyBackup {
  readonly name: string;
  readonly record: Omit<KeyRecord, 'id'>;
  /** Ascending without gaps, up to the latest. */
  readonly versions: readonly (FreshVersion & { readonly version: number })[];
}

/** Maximum number of versions: more than a backup of this program that fits into a request can have. */
export const versionsMax = 2 ** 18;

const hmacSecretBytes = 32;
/** A tenth of the versions that fit into a version's path, so that a restored key can still be rotated. */
const versionMax = 1_000_000_000;
/** The maximum of a Date (ECMA-262 §21.4.1.1). */
const timeMsMax = 8.64e15;

/**
 * Checks a key against the rules of creation, import and configuration, and yields to the event loop on the way.
 * @throws TransitError `invalid_request`
 */
export async function checkBackup({ name, record, versions }: KeyBackup): Promise<void> {
  const type = keyType(record.type);
  const { latestVersion, minAvailableVersion, minDecryptionVersion, minEncryptionVersion, keySize, backup } = record;
  if (!isKeyName(name)) throw invalidBackup('its name is not a valid key name');
  const numbers = [latestVersion, minAvailableVersion, minDecryptionVersion, minEncryptionVersion, record.autoRotatePeriodS];
  if (!numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) throw invalidBackup('a number is out of range');
  if (latestVersion > versionMax) throw invalidBackup('its latest version is out of range');
  const { maxOperations = 1 } = record; // absent if it is not set, never 0
  if (!Number.isSafeInteger(maxOperations) || maxOperations < 1) throw invalidBackup('its max_operations is out of range');
  if (backup !== undefined && !(isTime(backup.timeMs) && Number.isSafeInteger(backup.version))) {
    throw invalidBackup('the time or version of its last backup is invalid');
  }
  if (minDecryptionVersion < 1 || minDecryptionVersion > latestVersion || minEncryptionVersion > latestVersion) {
    throw invalidBackup('its minimum versions do not fit its versions');
  }
  checkMinimums(record);
  checkAutoRotatePeriod(record.autoRotatePeriodS);
  checkRotatesByItself(type, record.autoRotatePeriodS);
  checkAging(type, agingSettings(record));
  checkMinMacLength(type, record.minMacLength);
  checkDerivation(record);
  checkDisabledVersions(record);
  if (record.convergent && !record.derived) throw invalidBackup('convergent encryption requires derivation to be enabled');
  const first = Math.max(minAvailableVersion, 1);
  if (versions.length !== latestVersion - first + 1) throw invalidBackup('a version is missing');
  const latest = versions.at(-1);
  if (latest?.createdMs !== record.latestCreatedMs)
    throw invalidBackup('the time of its latest version differs from its settings');
  if (keySize !== (type.sizes === undefined ? 0 : latest.material.length))
    throw invalidBackup('its key size differs from that of its latest version');
  const slice = new TimeSlice();
  for (const [index, numbered] of versions.entries()) {
    if (slice.isOver) await slice.next();
    const { version, createdMs, hmacSecret, certificateChain } = numbered;
    const secretFits = hmacSecret.length === (type.materialIsHmacSecret ? 0 : hmacSecretBytes);
    const convergence = convergenceOf(record, numbered);
    if (version !== first + index) throw invalidBackup('a version is missing');
    if (!isTime(createdMs)) throw invalidBackup(`the creation time of version ${version} is missing or invalid`);
    if (!fitsVersion(type, numbered) || !secretFits) throw invalidBackup(`version ${version} does not fit the key's type`);
    if (certificateChain !== undefined && (type.keyPair === undefined || !isStoredChain(certificateChain))) {
      throw invalidBackup(`version ${version} has an invalid certificate chain`);
    }
    if (record.derived && type.keyPair !== undefined && numbered.material.length === 0) {
      throw invalidBackup(`version ${version} has no private half to derive from`);
    }
    // The setting of the key decides whether callers supply nonces, so all its versions must have the same source.
    if (record.convergent && (convergence === 1) !== (convergenceOf(record) === 1)) {
      throw invalidBackup(`version ${version} takes its nonces from a different source than its key does`);
    }
    if (record.convergent && convergence === 3 && record.kdf !== 'hkdf_sha256') {
      throw invalidBackup(`version ${version} cannot derive a nonce with the key derivation of its key`);
    }
  }
}

/** @throws TransitError `invalid_request` for more than `disableVersion` makes */
function checkDisabledVersions({ disabledVersions = {}, minAvailableVersion, latestVersion }: KeyBackup['record']): void {
  const disabled = Object.entries(disabledVersions);
  if (disabled.length > disabledVersionsMax) throw invalidBackup('too many of its versions are disabled');
  for (const [version, { reason, timeMs }] of disabled)
    if (Number(version) < minAvailableVersion || Number(version) >= latestVersion || !isReason(reason) || !isTime(timeMs))
      throw invalidBackup(`its disabled version ${version} does not fit its versions, or has an invalid reason or time`);
}

const isTime = (ms: number): boolean => Number.isSafeInteger(ms) && ms >= 0 && ms <= timeMsMax;

export const invalidBackup = (reason: string): TransitError =>
  new TransitError('invalid_request', `the backup cannot be restored: ${reason}`);

export const tooManyVersions = (): TransitError => invalidBackup(`it has more than ${versionsMax} versions`);
