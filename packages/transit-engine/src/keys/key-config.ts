import { blockBytes, cmacBytesMin } from '../algorithms/cmac.ts';
import { TransitError } from '../values/errors.ts';
import { aged, agingOf, agingSettings, checkAging, checkRequestedMinimums } from './aging.ts';
import { changed, checkAutoRotatePeriod, checkRotatesByItself, type KeyChange, type StoredKey } from './key.ts';
import { type AgingSettings, type KeyRecord, usableVersion } from './key-record.ts';
import { type KeyType, keyType } from './key-type.ts';
import { unusedKey } from './key-usage.ts';
import { checkMaxOperations, withMaxOperations, withSpentVersions } from './operation-limit.ts';
import type { Paths } from './paths.ts';

/** Settings to change. An absent field keeps its value. */
export interface ConfigureKeyRequest extends Partial<Settings<AgingSettings>> {
  readonly minDecryptionVersion?: number | undefined;
  readonly minEncryptionVersion?: number | undefined;
  readonly deletionAllowed?: boolean | undefined;
  readonly exportable?: boolean | undefined;
  readonly allowPlaintextBackup?: boolean | undefined;
  /** Seconds: 0, or at least an hour. */
  readonly autoRotatePeriodS?: number | undefined;
  /** Bytes; only for keys that make CMACs. */
  readonly minMacLength?: number | undefined;
  /** Encryptions and signatures of one version; 0 for the default of the type. */
  readonly maxOperations?: number | undefined;
}

type Settings<T> = { readonly [Name in keyof T]: T[Name] | undefined };

/**
 * @param utcMs - as in {@link aged}
 * @param usage - the recorded uses of the key
 * @throws TransitError `invalid_request`, and then changes nothing
 */
export function configureKey(
  paths: Paths,
  key: StoredKey,
  request: ConfigureKeyRequest,
  utcMs: number,
  usage = unusedKey(key.record.id),
): KeyChange {
  const { record } = key;
  checkVersionBound('decryption', request.minDecryptionVersion, record);
  checkVersionBound('encryption', request.minEncryptionVersion, record);
  if (request.autoRotatePeriodS !== undefined) checkAutoRotatePeriod(request.autoRotatePeriodS);
  const type = keyType(record.type);
  checkRotatesByItself(type, request.autoRotatePeriodS ?? 0);
  if (request.minMacLength !== undefined) checkMinMacLength(type, request.minMacLength);
  if (request.maxOperations !== undefined) checkMaxOperations(request.maxOperations);
  const before = agingSettings(record);
  const settings = {
    keepEncryptionVersions: request.keepEncryptionVersions ?? before.keepEncryptionVersions,
    keepDecryptionVersions: request.keepDecryptionVersions ?? before.keepDecryptionVersions,
    trimAfterS: request.trimAfterS ?? before.trimAfterS,
  };
  checkAging(type, settings);
  const { aging: _, ...ageless } = record;
  const aging = agingOf(record, settings);
  const byHand = {
    ...(aging === undefined ? ageless : { ...record, aging }),
    minDecryptionVersion: Math.max(request.minDecryptionVersion ?? record.minDecryptionVersion, 1),
    minEncryptionVersion: request.minEncryptionVersion ?? record.minEncryptionVersion,
    deletionAllowed: request.deletionAllowed ?? record.deletionAllowed,
    exportable: record.exportable || (request.exportable ?? false),
    allowPlaintextBackup: record.allowPlaintextBackup || (request.allowPlaintextBackup ?? false),
    autoRotatePeriodS: request.autoRotatePeriodS ?? record.autoRotatePeriodS,
    minMacLength: request.minMacLength ?? record.minMacLength,
  };
  checkMinimums(byHand);
  checkRequestedMinimums(byHand, request);
  const configured = withMaxOperations(aged(byHand, utcMs), request.maxOperations);
  const warnings = [...configurationWarnings(record, request), ...agingWarnings(byHand, configured)];
  return changed(paths, key, withSpentVersions(configured, usage), warnings);
}

/** Returns a warning for each minimum that the settings have moved at once. */
const agingWarnings = (byHand: KeyRecord, { minDecryptionVersion, minEncryptionVersion }: KeyRecord): string[] => [
  ...(minDecryptionVersion > byHand.minDecryptionVersion
    ? [`min_decryption_version is now ${minDecryptionVersion}: older versions no longer decrypt or verify`]
    : []),
  ...(minEncryptionVersion > byHand.minEncryptionVersion ? [`min_encryption_version is now ${minEncryptionVersion}`] : []),
];

function checkVersionBound(kind: 'decryption' | 'encryption', version: number | undefined, record: KeyRecord): void {
  const latestVersion = usableVersion(record);
  if (version === undefined) return;
  if (version < 0) throw new TransitError('invalid_request', `min ${kind} version cannot be negative`);
  if (version > latestVersion) {
    const refusal = `cannot set min ${kind} version of ${version}, latest key version is ${latestVersion}`;
    throw new TransitError('invalid_request', refusal);
  }
}

/** @throws TransitError `invalid_request` */
export function checkMinMacLength({ name, cmac }: KeyType, bytes: number): void {
  if (cmac === undefined && bytes !== blockBytes)
    throw new TransitError('invalid_request', `min_mac_length is a setting of keys that make CMACs, and not of type ${name}`);
  if (!Number.isInteger(bytes) || bytes < cmacBytesMin || bytes > blockBytes)
    throw new TransitError('invalid_request', `min_mac_length must be from ${cmacBytesMin} to ${blockBytes} bytes`);
}

type Minimums = Pick<KeyRecord, 'minAvailableVersion' | 'minDecryptionVersion' | 'minEncryptionVersion'>;

/** Checks the three minimum versions against each other. @throws TransitError `invalid_request` */
export function checkMinimums({ minAvailableVersion, minDecryptionVersion, minEncryptionVersion }: Minimums): void {
  if (minEncryptionVersion > 0 && minEncryptionVersion < minDecryptionVersion) {
    const refusal =
      `cannot set min encryption/decryption values; min encryption version of ${minEncryptionVersion} ` +
      `must be greater than or equal to min decryption version of ${minDecryptionVersion}`;
    throw new TransitError('invalid_request', refusal);
  }
  if (minEncryptionVersion < minAvailableVersion) {
    throw new TransitError('invalid_request', 'min encryption version should not be less than min available version');
  }
  if (minDecryptionVersion < minAvailableVersion) {
    throw new TransitError('invalid_request', 'min decryption version should not be less then min available version');
  }
}

function configurationWarnings(record: KeyRecord, request: ConfigureKeyRequest): string[] {
  const warnings = [];
  if (request.minDecryptionVersion === 0) warnings.push('key version numbering starts at 1; min_decryption_version is set to 1');
  if (record.exportable && request.exportable === false) warnings.push('exportable cannot be turned off; it stays on');
  if (record.allowPlaintextBackup && request.allowPlaintextBackup === false) {
    warnings.push('allow_plaintext_backup cannot be turned off; it stays on');
  }
  return warnings;
}
