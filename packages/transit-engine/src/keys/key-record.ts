import { blockBytes } from '../algorithms/cmac.ts';
import { parseJsonObject } from '../formats/json-object.ts';
import { DamagedRecord, TransitError } from '../values/errors.ts';
import { isKeyType } from './key-type.ts';

/** A key's configuration. Its versions have their own records, under `id`. Version numbers start at 1. */
export interface KeyRecord {
  /** Random and never reused, so that a new key shares nothing with a deleted key of the same name. */
  readonly id: string;
  readonly type: string;
  readonly derived: boolean;
  readonly convergent: boolean;
  readonly exportable: boolean;
  readonly allowPlaintextBackup: boolean;
  readonly deletionAllowed: boolean;
  /** All versions were imported. False after the first rotation. */
  readonly imported: boolean;
  /** Whether an imported key may be rotated. */
  readonly allowRotation: boolean;
  /** Bytes of material of the latest version for types without a fixed size; otherwise 0. */
  readonly keySize: number;
  readonly kdf: Kdf;
  /** How convergent versions make their nonce. -1 means that each version's record decides; without a value there, 3 applies. */
  readonly convergentVersion: -1 | 1 | 2;
  /** Seconds; 0 disables automatic rotation. */
  readonly autoRotatePeriodS: number;
  /** Bytes of the shortest CMAC that verifies without a length in the request; {@link blockBytes} for keys of other types. */
  readonly minMacLength: number;
  readonly latestVersion: number;
  /** Creation time of the latest version, in Unix milliseconds. Automatic rotation counts from it. */
  readonly latestCreatedMs: number;
  /** At least 1. */
  readonly minDecryptionVersion: number;
  /** 0 or at least `minDecryptionVersion`. */
  readonly minEncryptionVersion: number;
  /** Lower versions were deleted; 0 until the key is trimmed. Never above the other two minimums. */
  readonly minAvailableVersion: number;
  /** How the minimums move by themselves. Absent: they do not. */
  readonly aging?: Aging;
  /**
   * The newest version that the secondary clusters are known to have, 0 for none; newer ones may not be used yet. Absent: all versions may
   * be used.
   */
  readonly confirmedVersion?: number;
  /** Most encryptions and signatures of one version; absent: {@link operationsMax} gives the default. */
  readonly maxOperations?: number;
  /** Versions that have reached `maxOperations`, ascending: they make nothing more. Absent if none has. */
  readonly spentVersions?: readonly number[];
  /** Every use is refused until the key is restored. Absent otherwise. */
  readonly softDeleted?: true;
  /** When a soft-deleted key is deleted permanently, in Unix milliseconds. Absent unless that is scheduled. */
  readonly scheduledDeletionMs?: number;
  /** Versions whose every use is refused, by number: all available, none the latest. Absent if there are none. */
  readonly disabledVersions?: DisabledVersions;
  /** The last backup. */
  readonly backup?: Occasion;
  /** The restore that made this key. */
  readonly restore?: Occasion;
}

/** Settings by which the versions of a key age. 0 turns each off. */
export interface AgingSettings {
  /** Versions that may encrypt and sign, counted down from the newest usable one. */
  readonly keepEncryptionVersions: number;
  /** Versions that may decrypt and verify, counted likewise. */
  readonly keepDecryptionVersions: number;
  /** Seconds after which a version below `minDecryptionVersion` is deleted. */
  readonly trimAfterS: number;
}

/** @property retired - both members ascend; only with `trimAfterS`, otherwise empty */
export interface Aging extends AgingSettings {
  readonly retired: readonly Retired[];
}

/** The versions below `below`, and not below that of the entry before, are below `minDecryptionVersion` since then (Unix milliseconds). */
export interface Retired {
  readonly below: number;
  readonly sinceMs: number;
}

export interface DisabledVersion {
  /** Empty if none was given. */
  readonly reason: string;
  /** Unix milliseconds. */
  readonly timeMs: number;
}

export type DisabledVersions = Readonly<Record<string, DisabledVersion>>;

/** How derived keys derive the key of a context. Only restored keys use the counter mode. */
export type Kdf = 'hkdf_sha256' | 'hmac-sha256-counter';

/** The time of a backup or restore, in Unix milliseconds, and the latest version at that time. */
export interface Occasion {
  readonly timeMs: number;
  readonly version: number;
}

/**
 * Returns the newest version that may encrypt, sign, or be shown to a caller; 0 if none may. A newer version exists in this cluster only
 * until the secondary clusters have confirmed it.
 */
export const usableVersion = ({ confirmedVersion, latestVersion }: KeyRecord): number => confirmedVersion ?? latestVersion;

/** As {@link usableVersion}. @throws TransitError `unconfirmed` if none may be used */
export function latestUsable(record: KeyRecord): number {
  const version = usableVersion(record);
  if (version === 0)
    throw new TransitError('unconfirmed', 'the secondary clusters have not confirmed this key yet: try again later');
  return version;
}

/** Refuses every use of a soft-deleted key. @throws TransitError `soft_deleted` */
export function checkNotDeleted({ softDeleted }: KeyRecord): void {
  if (softDeleted) throw new TransitError('soft_deleted', 'refusing to use soft-deleted key');
}

/** Whether a version was disabled. */
export const isDisabled = ({ disabledVersions }: KeyRecord, version: number): boolean =>
  disabledVersions?.[version] !== undefined;

/** @throws TransitError `key_version_unavailable` for a disabled version */
export function checkEnabled(record: KeyRecord, version: number): void {
  if (isDisabled(record, version)) throw new TransitError('key_version_unavailable', `key version ${version} is disabled`);
}

/** Returns the record with these disabled versions in place of its own. */
export const withDisabled = ({ disabledVersions: _, ...record }: KeyRecord, versions: DisabledVersions): KeyRecord =>
  Object.keys(versions).length === 0 ? record : { ...record, disabledVersions: versions };

const formatVersion = 1;

type OptionalField =
  | 'aging'
  | 'confirmedVersion'
  | 'maxOperations'
  | 'spentVersions'
  | 'softDeleted'
  | 'scheduledDeletionMs'
  | 'disabledVersions'
  | 'backup'
  | 'restore';

const fieldTypes: Readonly<Record<Exclude<keyof KeyRecord, OptionalField>, 'string' | 'boolean' | 'number'>> = {
  id: 'string',
  type: 'string',
  derived: 'boolean',
  convergent: 'boolean',
  exportable: 'boolean',
  allowPlaintextBackup: 'boolean',
  deletionAllowed: 'boolean',
  imported: 'boolean',
  allowRotation: 'boolean',
  keySize: 'number',
  kdf: 'string',
  convergentVersion: 'number',
  autoRotatePeriodS: 'number',
  minMacLength: 'number',
  latestVersion: 'number',
  latestCreatedMs: 'number',
  minDecryptionVersion: 'number',
  minEncryptionVersion: 'number',
  minAvailableVersion: 'number',
};

/** Whether the settings in a backup have this field. Stored records may have further fields, written by later versions of this program. */
export const isKeyField = (name: string): boolean =>
  Object.hasOwn(fieldTypes, name) ||
  ['aging', 'softDeleted', 'disabledVersions', 'backup', 'restore', 'maxOperations'].includes(name);

/** Encodes JSON in UTF-8 with a format number. It contains no key material. */
export const encodeKeyRecord = (record: KeyRecord): Uint8Array =>
  Buffer.from(JSON.stringify({ format: formatVersion, ...record }));

/** @throws DamagedRecord for anything that {@link encodeKeyRecord} did not write */
export function decodeKeyRecord(bytes: Uint8Array): KeyRecord {
  const { format, ...record } = parseJsonObject(bytes);
  if (format !== formatVersion) throw new DamagedRecord('a key record has a format unknown to this program');
  if (!isKeyRecord(record)) throw new DamagedRecord('a key record lacks a field');
  return record;
}

function isKeyRecord(record: object): record is KeyRecord {
  const fields = new Map<string, unknown>(Object.entries(record));
  const type = fields.get('type');
  return (
    Object.entries(fieldTypes).every(([field, expected]) => typeof fields.get(field) === expected) &&
    typeof type === 'string' &&
    isKeyType(type) &&
    ['hkdf_sha256', 'hmac-sha256-counter'].includes(String(fields.get('kdf'))) &&
    [-1, 1, 2].includes(Number(fields.get('convergentVersion'))) &&
    ['number', 'undefined'].includes(typeof fields.get('confirmedVersion')) &&
    isAging(fields.get('aging')) &&
    ['number', 'undefined'].includes(typeof fields.get('maxOperations')) &&
    isVersions(fields.get('spentVersions')) &&
    [true, undefined].includes(fields.get('softDeleted') as true | undefined) &&
    ['number', 'undefined'].includes(typeof fields.get('scheduledDeletionMs')) &&
    areDisabledVersions(fields.get('disabledVersions')) &&
    isOccasion(fields.get('backup')) &&
    isOccasion(fields.get('restore'))
  );
}

const isAging = (value: unknown): boolean => {
  if (value === undefined) return true;
  if (typeof value !== 'object' || value === null) return false;
  const { keepEncryptionVersions, keepDecryptionVersions, trimAfterS, retired } = value as Partial<Record<keyof Aging, unknown>>;
  return (
    [keepEncryptionVersions, keepDecryptionVersions, trimAfterS].every((number) => Number.isSafeInteger(number)) &&
    Array.isArray(retired) &&
    retired.every((each) => Number.isSafeInteger(each?.below) && Number.isSafeInteger(each?.sinceMs))
  );
};

const isVersions = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every((each) => typeof each === 'number'));

const areDisabledVersions = (value: unknown): boolean =>
  value === undefined ||
  (typeof value === 'object' &&
    value !== null &&
    Object.entries(value).every(([version, each]) => /^[1-9]\d{0,9}$/.test(version) && isDisabledVersion(each)));

const isDisabledVersion = (value: unknown): value is DisabledVersion =>
  typeof value === 'object' &&
  value !== null &&
  'reason' in value &&
  typeof value.reason === 'string' &&
  'timeMs' in value &&
  typeof value.timeMs === 'number' &&
  Object.keys(value).length === 2;

const isOccasion = (value: unknown): boolean =>
  value === undefined ||
  (typeof value === 'object' &&
    value !== null &&
    'timeMs' in value &&
    typeof value.timeMs === 'number' &&
    'version' in value &&
    typeof value.version === 'number');
