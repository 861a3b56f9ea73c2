import type { Condition, Transaction, Write } from '@transitd/storage-fsm';
import { TransitError } from '../errors.ts';
import type { ManagedKeyReference } from '../managed/provider.ts';
import { dueWrites } from './auto-rotation.ts';
import { encodeKeyRecord, type KeyRecord } from './key-record.ts';
import { apiNameOf, fitsType, type KeyType, keyType, requestedType, type TypeRequest } from './key-type.ts';
import { type VersionView, versionView } from './key-view.ts';
import type { Paths } from './paths.ts';
import { encodeVersionRecord, type VersionRecord } from './version-record.ts';

/** What a new key is asked to be. */
export interface CreateKeyRequest extends TypeRequest, ManagedKeyReference {
  readonly derived?: boolean | undefined;
  /** Equal plaintexts under equal contexts give equal ciphertexts; needs `derived`. */
  readonly convergentEncryption?: boolean | undefined;
  readonly exportable?: boolean | undefined;
  readonly allowPlaintextBackup?: boolean | undefined;
  /** Bytes, for types without a fixed size; 0 leaves it to the type. */
  readonly keySize?: number | undefined;
  /** Seconds: 0, or at least an hour. */
  readonly autoRotatePeriodS?: number | undefined;
}

/** What is decided outside: bytes, random or imported, and the time. */
export type FreshVersion = Omit<VersionRecord, 'keyName'>;

/** A key as the store holds it. */
export interface StoredKey {
  readonly name: string;
  readonly record: KeyRecord;
  /** Index of the log entry that last wrote the record. */
  readonly revision: number;
}

/** A key's next state and the one transaction that brings it about, or none when nothing changes. */
export interface KeyChange {
  readonly record: KeyRecord;
  readonly newVersion?: VersionView;
  /** Holds the new version's material; whoever commits it wipes it. */
  readonly transaction?: Transaction;
  readonly warnings: readonly string[];
}

/** The least period of automatic rotation, in seconds: an hour. */
export const autoRotatePeriodMinS = 3600;
/** Version records that one trim deletes itself; the sweep takes the rest, so that no transaction grows with history. */
export const versionsPerTrimMax = 1000;

/**
 * The settings of a new key, or the refusal of a request that no key could satisfy. Whether its type derives is asked when it is made: an
 * existing key is the answer all the same.
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

/** What every key begins with, made or imported. */
export const newKeySettings = {
  deletionAllowed: false,
  imported: false,
  allowRotation: false,
  kdf: 'hkdf_sha256',
  convergentVersion: -1,
  latestVersion: 1,
  latestCreatedMs: 0,
  minDecryptionVersion: 1,
  minEncryptionVersion: 0,
  minAvailableVersion: 0,
} as const satisfies Partial<KeyRecord>;

/** @throws TransitError `invalid_request` for a type that does not derive, or does not encrypt under what it derives */
export function checkDerivation({ type: name, derived, convergent }: Pick<KeyRecord, 'type' | 'derived' | 'convergent'>): void {
  const { supportsDerivation, supportsEncryption } = keyType(name);
  if (derived && !supportsDerivation) {
    throw new TransitError('invalid_request', `key derivation and convergent encryption not supported for keys of type ${name}`);
  }
  if (convergent && !supportsEncryption) {
    throw new TransitError('invalid_request', `convergent encryption not supported for keys of type ${name}`);
  }
}

/** The next version of a managed key is one that somebody names. @throws TransitError `invalid_request` */
export function checkRotatesByItself({ managed }: KeyType, autoRotatePeriodS: number): void {
  if (managed && autoRotatePeriodS !== 0) {
    throw new TransitError('invalid_request', 'auto_rotate_period cannot be used with managed keys: their rotation names a key');
  }
}

/** Bytes of a version's material as the key's record has them: 0 where the type knows. */
function checkedKeySize(type: KeyType, requested: number): number {
  if (type.sizes === undefined) {
    if (requested !== 0) throw new TransitError('invalid_request', `key_size is not valid for algorithm ${type.name}`);
    return 0;
  }
  const keySize = requested === 0 ? type.materialBytes : requested;
  if (!fitsType(type, keySize)) throw new TransitError('invalid_request', `invalid key_size ${keySize}`);
  return keySize;
}

/** A new key with its first version, while the name is free; whoever commits it wipes it. */
export function createKey(paths: Paths, name: string, record: KeyRecord, fresh: FreshVersion): Transaction {
  return withNewVersion(paths, { name, revision: 0 }, record, fresh);
}

/** What whoever makes a key of a type should know. */
export const typeWarnings = ({ type: name }: Pick<KeyRecord, 'type'>): string[] => {
  const type = keyType(name);
  return type.experimental ? [`keys of type ${apiNameOf(type)} are experimental and not for use in production`] : [];
};

/** What an existing key says to a creation that asked for something else. */
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
 * A new latest version of random material, after which nothing can be imported any more. Its records are few, however many versions
 * there are.
 * @throws TransitError `invalid_request`
 */
export function rotateKey(paths: Paths, key: StoredKey, fresh: FreshVersion): KeyChange {
  const { imported, allowRotation } = key.record;
  if (imported && !allowRotation) throw new TransitError('invalid_request', `imported key ${key.name} does not allow rotation`);
  return addVersion(paths, key, { ...key.record, imported: false }, { ...fresh, ...convergenceOfNewVersions(key.record) });
}

/**
 * Versions that are added to a restored key of convergent version 2 have version 3, where its key derivation can give that one's nonce key.
 * Keys of version 1 stay: their callers go on handing in nonces.
 */
const convergenceOfNewVersions = ({ convergent, convergentVersion, kdf }: KeyRecord): Pick<FreshVersion, 'convergentVersion'> =>
  convergent && convergentVersion === 2 && kdf === 'hkdf_sha256' ? { convergentVersion: 3 } : {};

/** The key with `fresh` as its latest version, and otherwise as `record` has it. */
export function addVersion(paths: Paths, key: StoredKey, record: KeyRecord, fresh: FreshVersion): KeyChange {
  const next = { ...record, latestVersion: record.latestVersion + 1, latestCreatedMs: fresh.createdMs };
  const newVersion = versionView(next, { ...fresh, version: next.latestVersion });
  return { record: next, newVersion, transaction: withNewVersion(paths, key, next, fresh), warnings: [] };
}

/** A version as it lies in the store. */
export interface StoredVersion {
  readonly version: number;
  readonly revision: number;
  readonly record: VersionRecord;
}

/** The same version with other contents; the key's record is written with it, so that nobody keeps the old one. */
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
    ],
  };
}

/** The record says when and of which version a backup was taken. */
export function markBackup(paths: Paths, key: StoredKey, timeMs: number): KeyChange {
  return changed(paths, key, { ...key.record, backup: { timeMs, version: key.record.latestVersion } }, []);
}

/**
 * Raises the lowest version that exists; those below are gone for good.
 * @throws TransitError `invalid_request`
 */
export function trimKey(paths: Paths, key: StoredKey, minAvailableVersion: number | undefined): KeyChange {
  const { record } = key;
  if (minAvailableVersion === undefined) throw new TransitError('invalid_request', 'missing min_available_version');
  const fault = trimFault(record, minAvailableVersion);
  if (fault !== undefined) throw new TransitError('invalid_request', fault);
  const firstVersion = Math.max(record.minAvailableVersion, 1);
  const deletions = Array.from({ length: Math.min(minAvailableVersion - firstVersion, versionsPerTrimMax) }, (_, i) => ({
    path: paths.version({ keyId: record.id, version: firstVersion + i }),
    value: null,
  }));
  return changed(paths, key, { ...record, minAvailableVersion }, [], deletions);
}

/**
 * One write frees the name; the versions, which nothing names any more, are the sweep's.
 * @throws TransitError `deletion_not_allowed`
 */
export function deleteKey(paths: Paths, key: StoredKey): Transaction {
  if (!key.record.deletionAllowed) {
    throw new TransitError('deletion_not_allowed', `error deleting policy ${key.name}: deletion is not allowed for this key`);
  }
  const due = dueWrites(paths, key.name, { before: key.record, after: undefined });
  return { conditions: [unchanged(paths, key)], writes: [{ path: paths.key(key.name), value: null }, ...due] };
}

/** Holds while nobody else changed the key; for revision 0, while there is none. */
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
    ],
  };
}

/** The key with other settings, or no transaction when they are what they were. */
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
    return 'minimum available version cannot be greater than minmum encryption version';
  }
  if (minAvailableVersion > record.minDecryptionVersion) {
    return 'minimum available version cannot be greater than minimum decryption version';
  }
  return minAvailableVersion === 0 ? 'minimum available version should be positive' : undefined;
}
