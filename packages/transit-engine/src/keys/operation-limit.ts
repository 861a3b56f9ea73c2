import { TransitError } from '../values/errors.ts';
import { type KeyRecord, usableVersion } from './key-record.ts';
import { keyType } from './key-type.ts';
import type { KeyUsage, VersionUse } from './key-usage.ts';

/** Most encryptions of one key with AES-GCM and random nonces: then a nonce repeats with a probability of 2^-32 (NIST SP 800-38D §8.3). */
const randomNoncesMax = 2 ** 32;
/** The part of the limit from which on there is a warning. */
const warnedPart = 0.8;

/** Returns how many encryptions and signatures one version may make; undefined for any number. */
export function operationsMax({ type, derived, maxOperations }: KeyRecord): number | undefined {
  if (maxOperations !== undefined) return maxOperations;
  const isGcm = keyType(type).aead?.cipher.endsWith('-gcm') === true;
  return isGcm && !derived ? randomNoncesMax : undefined;
}

/** A version that has made most of what it may, or more. */
export interface NearLimit {
  readonly version: number;
  readonly made: number;
  readonly max: number;
}

const madeBy = ({ encryptions, signatures }: VersionUse): number => encryptions + signatures;

/** Returns the newest version that may be used, if it has made 80 % of what it may. */
export function nearLimit(record: KeyRecord, { versions }: KeyUsage): NearLimit | undefined {
  const max = operationsMax(record);
  const version = usableVersion(record);
  const use = versions.get(version);
  if (max === undefined || use === undefined || madeBy(use) < warnedPart * max) return undefined;
  return { version, made: madeBy(use), max };
}

/** Returns the record with another limit. @param requested - 0 for the default; undefined keeps the limit */
export function withMaxOperations(record: KeyRecord, requested: number | undefined): KeyRecord {
  const { maxOperations = 0, ...rest } = record;
  const max = requested ?? maxOperations;
  return max > 0 ? { ...rest, maxOperations: max } : rest;
}

/** Returns the record with the versions that make nothing more: those that have reached a limit which was set for the key. */
export function withSpentVersions(record: KeyRecord, { versions }: KeyUsage): KeyRecord {
  const { spentVersions: _, ...rest } = record;
  const { maxOperations, minEncryptionVersion, minDecryptionVersion } = record;
  if (maxOperations === undefined) return rest;
  const lowest = Math.max(minEncryptionVersion, minDecryptionVersion); // lower ones make nothing anyway
  const spent = [...versions].filter(([version, use]) => version >= lowest && madeBy(use) >= maxOperations);
  return spent.length === 0 ? rest : { ...rest, spentVersions: spent.map(([version]) => version) };
}

/** @throws TransitError `key_version_unavailable` for a version that has reached the limit of its key */
export function checkUnspent({ spentVersions, maxOperations }: KeyRecord, version: number): void {
  if (spentVersions?.includes(version) !== true) return;
  const refusal = `version ${version} has made the ${maxOperations} encryptions and signatures that max_operations allows: rotate the key`;
  throw new TransitError('key_version_unavailable', refusal);
}

/** @throws TransitError `invalid_request` */
export function checkMaxOperations(maxOperations: number): void {
  if (!Number.isSafeInteger(maxOperations) || maxOperations < 0)
    throw new TransitError('invalid_request', 'max_operations must be 0 for the default, or a number from 1 to 2^53 - 1');
}
