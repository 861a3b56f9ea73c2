import type { Condition, Transaction, Write } from '@transitd/storage-fsm';
import { blockBytes } from '../algorithms/cmac.ts';
import type { ManagedKeyReference } from '../managed/provider.ts';
import { permissionDenied, TransitError } from '../values/errors.ts';
import { aged, trimmedAt, withoutTrimmed } from './aging.ts';
import { dueWrites } from './due.ts';
import { encodeKeyRecord, type KeyRecord, usableVersion } from './key-record.ts';
import { apiNameOf, fitsType, type KeyType, keyType, requestedType, type TypeRequest } from './key-type.ts';
import type { KeyUsage } from './key-usage.ts';
import { type VersionView, versionView } from './key-view.ts';
import { withSpentVersions } from './operation-limit.ts';
import type { Paths } from './paths.ts';
import { encodeVersionRecord, type VersionRecord } from './version-record.ts';

/** A request that makes a key of a name that no key has. */
export interface MakeKeyRequest {
  /** False for a caller who may only create: a name that a key has is refused. True when absent. */
  readonly mayUpdate?: boolean | undefined;
}

/** Refuses a caller who may only create, because the key exists. @throws TransitError `permission_denied` */
export function checkMayUpdate({ mayUpdate = true }: MakeKeyRequest): void {
  if (!mayUpdate) throw permissionDenied('capabilities.update');
}

/** The settings of a new key. */
export interface CreateKeyRequest extends TypeRequest, ManagedKeyReference, MakeKeyRequest {
  readonly derived?: boolean | undefined;
  /** Equal plaintexts under equal contexts give equal ciphertexts. Requires `derived`. */
  readonly convergentEncryption?: boolean | undefined;
  readonly exportable?: boolean | undefined;
  readonly allowPlaintextBackup?: boolean | undefined;
  /** Bytes, for types without a fixed size; 0 selects the type's default. */
  readonly keySize?: number | undefined;
  /** Seconds: 0, or at least an hour. */
  readonly autoRotatePeriodS?: number | undefined;
}

/** A version that is not stored yet: its bytes, random or imported, and its time. */
export type FreshVersion = Omit<VersionRecord, 'keyName'>;

/** A stored key. */
export interface StoredKey {
  readonly name: string;
  readonly record: KeyRecord;
  /** Index of the log entry that last wrote the record. */
  readonly revision: number;
}

/** A key's next state and the one transaction that stores it; no transaction when nothing changes. */
export interface KeyChange {
  readonly record: KeyRecord;
  readonly newVersion?: VersionView;
  /** Contains the new version's material. The caller commits and wipes it. */
  readonly transaction?: Transaction;
  readonly warnings: readonly string[];
}

/**
 * Asked before versions are taken away; refuses by throwing. The change takes place only if the key has not changed since it was asked.
 * @param goes - returns whether a version would go
 */
export type LossCheck = (key: StoredKey, goes: (version: number) => boolean) => Promise<void>;

/** Shortest period of automatic rotation, in seconds: one hour. */
export const autoRotatePeriodMinS = 3600;
/** Version records that one trim deletes. The sweep deletes the rest, so that no transaction grows with history. */
export const versionsPerTrimMax = 1000;

/**
 * Returns the settings of a new key, and refuses values that no key may have. `checkDerivation` checks later whether the type supports
 * derivation, because a creation of an existing key does not depend on it.
 * @throws TransitError `invalid_request`
 */
export function settingsOf(request: CreateKeyRequest): Omit<KeyRecord, 'id'> {
  const { derived = false, convergentEncryption = false, keySize = 0, autoRotatePeriodS = 0 } = request;
  checkAutoRotatePeriod(autoRotatePeriodS);
  if (convergentEncryption && !derived) {
    throw new TransitError('invalid_request', 'convergent encryption requires derivation to be enabled');
  }
  const type = requestedType(request);
  checkRotatesByItself(type, autoRotatePeriodS);
  return {
    ...newKeySettings,
    type: type.name,
    derived,
    convergent: convergentEncryption,
    exportable: request.exportable ?? false,
    allowPlaintextBackup: request.allowPlaintextBackup ?? false,
    keySize: checkedKeySize(type, keySize),
    autoRotatePeriodS,
  };
}

/** The initial settings of every key, created or imported. */
export const newKeySettings = {
  deletionAllowed: false,
  imported: false,
  allowRotation: false,
  kdf: 'hkdf_sha256',
  convergentVersion: -1,
  minMacLength: blockBytes,
  latestVersion: 1,
  latestCreatedMs: 0,
  minDecryptionVersion: 1,
  minEncryptionVersion: 0,
  minAvailableVersion: 0,
} as const satisfies Partial<KeyRecord>;

/** @throws TransitError `invalid_request` for a type that does not support derivation, or convergent encryption */
export function checkDerivation({ type: name, derived, convergent }: Pick<KeyRecord, 'type' | 'derived' | 'convergent'>): void {
  const { supportsDerivation, supportsEncryption } = keyType(name);
  if (derived && !supportsDerivation) {
    throw new TransitError('invalid_request', `key derivation and convergent encryption not supported for keys of type ${name}`);
  }
  if (convergent && !supportsEncryption) {
    throw new TransitError('invalid_request', `convergent encryption not supported for keys of type ${name}`);
  }
}

/** A managed key cannot rotate automatically, because each version names a key of another system. @throws TransitError `invalid_request` */
export function checkRotatesByItself({ managed }: KeyType, autoRotatePeriodS: number): void {
  if (managed && autoRotatePeriodS !== 0) {
    throw new TransitError('invalid_request', 'auto_rotate_period cannot be used with managed keys: their rotation names a key');
  }
}

/** Returns the key size for the record: bytes of material, or 0 for types with a fixed size. */
function checkedKeySize(type: KeyType, requested: number): number {
  if (type.sizes === undefined) {
    if (requested !== 0) throw new TransitError('invalid_request', `key_size is not valid for algorithm ${type.name}`);
    return 0;
  }
  const keySize = requested === 0 ? type.materialBytes : requested;
  if (!fitsType(type, keySize)) throw new TransitError('invalid_request', `invalid key_size ${keySize}`);
  return keySize;
}

/** Stores a new key with its first version if the name is free. The caller commits and wipes the transaction. */
export function createKey(paths: Paths, name: string, record: KeyRecord, fresh: FreshVersion): Transaction {
  return withNewVersion(paths, { name, revision: 0 }, record, fresh);
}

/** Returns the key so that versions which are added to it may not be used before the secondary clusters have confirmed them. */
export const heldBack = <K extends { readonly record: KeyRecord }>(key: K): K => ({
  ...key,
  record: { ...key.record, confirmedVersion: usableVersion(key.record) },
});

/**
 * Lets all versions of a key be used, and moves its minimums to them.
 * @param noteRevision - of the key's entry in the index of unconfirmed keys
 * @param utcMs - as in {@link aged}
 */
export function confirmKey(
  paths: Paths,
  key: StoredKey,
  noteRevision: number,
  utcMs: number,
): { readonly record: KeyRecord; readonly transaction: Transaction } {
  const { confirmedVersion: _, ...confirmed } = key.record;
  const record = aged(confirmed, utcMs);
  const path = paths.unconfirmed + key.name;
  const transaction = {
    conditions: [unchanged(paths, key), { path, revision: noteRevision }],
    writes: [
      { path: paths.key(key.name), value: encodeKeyRecord(record) },
      { path, value: null },
      ...dueWrites(paths, key.name, { before: key.record, after: record }),
    ],
  };
  return { record, transaction };
}

/** Returns the writes that keep the index of unconfirmed keys in step with a key that gets new versions. */
export const unconfirmedWrites = (paths: Paths, name: string, { confirmedVersion }: KeyRecord): Write[] =>
  confirmedVersion === undefined ? [] : [{ path: paths.unconfirmed + name, value: unconfirmedMark }];

/** The path and the revision contain all the information, but every record needs a value. */
const unconfirmedMark = Uint8Array.of(1);

/** Returns warnings about the key's type. */
export const typeWarnings = ({ type: name }: Pick<KeyRecord, 'type'>): string[] => {
  const type = keyType(name);
  return type.experimental ? [`keys of type ${apiNameOf(type)} are experimental and not for use in production`] : [];
};

/** Returns the warnings for a request to create a key that already exists, including a warning if the request differs from the key. */
export function creationWarnings({ name, record }: StoredKey, request: CreateKeyRequest): string[] {
  const same =
    (request.type === undefined || requestedType(request).name === record.type) &&
    agrees(request.derived, record.derived) &&
    agrees(request.convergentEncryption, record.convergent) &&
    agrees(request.exportable, record.exportable) &&
    agrees(request.allowPlaintextBackup, record.allowPlaintextBackup) &&
    (agrees(request.keySize, record.keySize) || request.keySize === 0) &&
    agrees(request.autoRotatePeriodS, record.autoRotatePeriodS);
  return [...typeWarnings(record), ...(same ? [] : [`key ${name} already existed; its settings were not changed`])];
}

const agrees = <T>(requested: T | undefined, present: T): boolean => requested === undefined || requested === present;

/**
 * Adds a new latest version. Afterwards no version can be imported into the key. The number of written records does not depend on the
 * number of versions.
 * @param utcMs - as in {@link aged}
 * @throws TransitError `invalid_request`
 */
export function rotateKey(paths: Paths, key: StoredKey, fresh: FreshVersion, utcMs: number): KeyChange {
  const { imported, allowRotation } = key.record;
  if (imported && !allowRotation) throw new TransitError('invalid_request', `imported key ${key.name} does not allow rotation`);
  const version = { ...fresh, ...convergenceOfNewVersions(key.record) };
  return addVersion(paths, key, { ...key.record, imported: false }, version, utcMs);
}

/**
 * New versions of a restored key of convergent version 2 use version 3, if the key's derivation can derive the nonce key. Keys of version 1
 * keep version 1, because their callers continue to supply nonces.
 */
const convergenceOfNewVersions = ({ convergent, convergentVersion, kdf }: KeyRecord): Pick<FreshVersion, 'convergentVersion'> =>
  convergent && convergentVersion === 2 && kdf === 'hkdf_sha256' ? { convergentVersion: 3 } : {};

/** Returns the key with the settings of `record` and `fresh` as its latest version. @param utcMs - as in {@link aged} */
export function addVersion(paths: Paths, key: StoredKey, record: KeyRecord, fresh: FreshVersion, utcMs: number): KeyChange {
  const next = aged({ ...record, latestVersion: record.latestVersion + 1, latestCreatedMs: fresh.createdMs }, utcMs);
  const newVersion = versionView(next, { ...fresh, version: next.latestVersion });
  return { record: next, newVersion, transaction: withNewVersion(paths, key, next, fresh), warnings: [] };
}

/** A stored version. */
export interface StoredVersion {
  readonly version: number;
  readonly revision: number;
  readonly record: VersionRecord;
}

/** Replaces a version's record. The transaction also writes the key's record, so that caches drop the key. */
export function replaceVersion(
  paths: Paths,
  key: StoredKey,
  { version, revision }: StoredVersion,
  record: VersionRecord,
): Transaction {
  const path = paths.version({ keyId: key.record.id, version });
  return {
    conditions: [unchanged(paths, key), { path, revision }],
    writes: [
      { path: paths.key(key.name), value: encodeKeyRecord(key.record) },
      { path, value: encodeVersionRecord(record) },
      ...unconfirmedWrites(paths, key.name, key.record),
    ],
  };
}

/** Records the time and the latest version of a backup. */
export function markBackup(paths: Paths, key: StoredKey, timeMs: number): KeyChange {
  return changed(paths, key, { ...key.record, backup: { timeMs, version: key.record.latestVersion } }, []);
}

/**
 * Raises the lowest available version. Lower versions are deleted permanently.
 * @throws TransitError `invalid_request`
 */
export function trimKey(paths: Paths, key: StoredKey, minAvailableVersion: number | undefined): KeyChange {
  const { record } = key;
  if (minAvailableVersion === undefined) throw new TransitError('invalid_request', 'missing min_available_version');
  const fault = trimFault(record, minAvailableVersion);
  if (fault !== undefined) throw new TransitError('invalid_request', fault);
  return trimmed(paths, key, record, minAvailableVersion);
}

/**
 * Deletes the versions that have been below the minimum for as long as `trim_after` says.
 * @param dueMs - the time by the earlier clock
 */
export function trimAged(paths: Paths, key: StoredKey, dueMs: number): KeyChange {
  const { record } = key;
  return trimmed(paths, key, record, trimmedAt(record, dueMs) ?? record.minAvailableVersion);
}

function trimmed(paths: Paths, key: StoredKey, record: KeyRecord, minAvailableVersion: number): KeyChange {
  const firstVersion = Math.max(record.minAvailableVersion, 1);
  const deletions = Array.from({ length: Math.min(minAvailableVersion - firstVersion, versionsPerTrimMax) }, (_, i) => ({
    path: paths.version({ keyId: record.id, version: firstVersion + i }),
    value: null,
  }));
  return changed(paths, key, withoutTrimmed(record, minAvailableVersion), [], deletions);
}

/** @throws TransitError `deletion_not_allowed` */
export function checkDeletionAllowed({ name, record }: StoredKey): void {
  if (record.deletionAllowed) return;
  const refusal = `error deleting policy ${name}: deletion is not allowed for this key: set deletion_allowed in its configuration`;
  throw new TransitError('deletion_not_allowed', refusal);
}

/**
 * Frees the name with one write. The sweep deletes the unreachable versions later.
 * @throws TransitError `deletion_not_allowed`
 */
export function deleteKey(paths: Paths, key: StoredKey): Transaction {
  checkDeletionAllowed(key);
  const due = dueWrites(paths, key.name, { before: key.record, after: undefined });
  const unconfirmed = unconfirmedWrites(paths, key.name, key.record).map(({ path }) => ({ path, value: null }));
  return { conditions: [unchanged(paths, key)], writes: [{ path: paths.key(key.name), value: null }, ...due, ...unconfirmed] };
}

/** The condition that the key has not changed; for revision 0, that it does not exist. */
export const unchanged = (paths: Paths, { name, revision }: Pick<StoredKey, 'name' | 'revision'>): Condition => ({
  path: paths.key(name),
  revision,
});

function withNewVersion(
  paths: Paths,
  key: Pick<StoredKey, 'name' | 'revision'> & { readonly record?: KeyRecord },
  record: KeyRecord,
  fresh: FreshVersion,
): Transaction {
  const { name } = key;
  const version = paths.version({ keyId: record.id, version: record.latestVersion });
  return {
    conditions: [unchanged(paths, key), { path: version, revision: 0 }],
    writes: [
      { path: paths.key(name), value: encodeKeyRecord(record) },
      { path: version, value: encodeVersionRecord({ keyName: name, ...fresh }) },
      ...dueWrites(paths, name, { before: key.record, after: record }),
      ...unconfirmedWrites(paths, name, record),
    ],
  };
}

/** Returns the key with other settings; no transaction if they are the same. */
export function changed(
  paths: Paths,
  key: StoredKey,
  record: KeyRecord,
  warnings: readonly string[],
  deletions: readonly Write[] = [],
): KeyChange {
  const value = encodeKeyRecord(record);
  if (Buffer.compare(value, encodeKeyRecord(key.record)) === 0) return { record, warnings };
  const due = dueWrites(paths, key.name, { before: key.record, after: record });
  const writes = [{ path: paths.key(key.name), value }, ...due, ...deletions];
  return { record, transaction: { conditions: [unchanged(paths, key)], writes }, warnings };
}

/** Returns the write that keeps the versions that make nothing more in step with the uses of a key. */
export function spentWrites(paths: Paths, { name, record }: StoredKey, usage: KeyUsage): Write[] {
  const value = encodeKeyRecord(withSpentVersions(record, usage));
  return Buffer.compare(value, encodeKeyRecord(record)) === 0 ? [] : [{ path: paths.key(name), value }];
}

/** @throws TransitError `invalid_request` */
export function checkAutoRotatePeriod(periodS: number): void {
  if (periodS !== 0 && periodS < autoRotatePeriodMinS) {
    throw new TransitError('invalid_request', 'auto rotate period must be 0 to disable or at least an hour');
  }
}

function trimFault(record: KeyRecord, minAvailableVersion: number): string | undefined {
  if (minAvailableVersion < record.minAvailableVersion) return 'minimum available version cannot be decremented';
  if (record.minEncryptionVersion === 0) {
    return 'minimum available version cannot be set when minimum encryption version is not set';
  }
  if (minAvailableVersion > record.minEncryptionVersion) {
    return 'minimum available version cannot be greater than minmum encryption version'; // cspell:ignore minmum
  }
  if (minAvailableVersion > record.minDecryptionVersion) {
    return 'minimum available version cannot be greater than minimum decryption version';
  }
  return minAvailableVersion === 0 ? 'minimum available version should be positive' : undefined;
}
