import { flagIn, numberIn, objectIn, textIn } from '../api/json.ts';

/** The use that a version still has: to encrypt and sign, only to decrypt and verify, or none. */
export type VersionUse = 'encrypts' | 'decrypts' | 'nothing';

export interface Version {
  readonly version: number;
  /** Undefined for a version below the minimum for decryption: the API does not show those. */
  readonly createdMs: number | undefined;
}

export interface Key {
  readonly name: string;
  readonly type: string;
  readonly latest: number;
  readonly minAvailable: number;
  readonly minDecryption: number;
  /** 0: only the latest version encrypts and signs. */
  readonly minEncryption: number;
  readonly autoRotateS: number;
  /** Versions that may encrypt and sign, or decrypt and verify; 0 for no limit. */
  readonly keepEncryption: number;
  readonly keepDecryption: number;
  /** The minimums once the next version may be used. */
  readonly nextMinDecryption: number;
  readonly nextMinEncryption: number;
  /** Seconds after which versions that no longer decrypt are deleted; 0 for never. */
  readonly trimAfterS: number;
  readonly isDerived: boolean;
  readonly isDeletable: boolean;
  readonly isExportable: boolean;
  readonly hasPlaintextBackup: boolean;
  readonly isImported: boolean;
  /** Every use is refused until the key is restored. */
  readonly isSoftDeleted: boolean;
  /** When the key is deleted permanently; undefined unless that is scheduled. */
  readonly deletionDueMs: number | undefined;
  /** Disabled versions, with their reasons. */
  readonly disabled: ReadonlyMap<number, string>;
  readonly encrypts: boolean;
  readonly decrypts: boolean;
  readonly signs: boolean;
  /** Oldest first. */
  readonly versions: readonly Version[];
}

/** Reads the answer of `keys/:name`. */
export function keyIn(data: unknown): Key {
  const key = objectIn(data);
  const shown = Object.entries(objectIn(key['keys'])).map(([version, value]) => ({
    version: Number(version),
    createdMs: typeof value === 'number' ? value * 1000 : Date.parse(textIn(objectIn(value)['creation_time'])),
  }));
  const minAvailable = numberIn(key['min_available_version']);
  const minDecryption = numberIn(key['min_decryption_version']);
  const minEncryption = numberIn(key['min_encryption_version']);
  const next = objectIn(key['next_version']);
  return {
    name: textIn(key['name']),
    type: textIn(key['type']),
    latest: numberIn(key['latest_version']),
    minAvailable,
    minDecryption,
    minEncryption,
    autoRotateS: numberIn(key['auto_rotate_period']),
    keepEncryption: numberIn(key['keep_encryption_versions']),
    keepDecryption: numberIn(key['keep_decryption_versions']),
    nextMinDecryption: Math.max(minDecryption, numberIn(next['min_decryption_version'])),
    nextMinEncryption: Math.max(minEncryption, numberIn(next['min_encryption_version'])),
    trimAfterS: numberIn(key['trim_after']),
    isDerived: flagIn(key['derived']),
    isDeletable: flagIn(key['deletion_allowed']),
    isExportable: flagIn(key['exportable']),
    hasPlaintextBackup: flagIn(key['allow_plaintext_backup']),
    isImported: flagIn(key['imported']),
    isSoftDeleted: flagIn(key['soft_deleted']),
    deletionDueMs: Date.parse(textIn(objectIn(key['scheduled_deletion'])['due_time'])) || undefined,
    disabled: new Map(
      Object.entries(objectIn(key['disabled_versions'])).map(([version, each]) => [
        Number(version),
        textIn(objectIn(each)['reason']),
      ]),
    ),
    encrypts: flagIn(key['supports_encryption']),
    decrypts: flagIn(key['supports_decryption']),
    signs: flagIn(key['supports_signing']),
    versions: [...unseen(Math.max(1, minAvailable), minDecryption), ...shown.sort((a, b) => a.version - b.version)],
  };
}

/** Returns the versions from `first` to before `end`. */
const unseen = (first: number, end: number): Version[] =>
  Array.from({ length: Math.max(0, end - first) }, (_, index) => ({ version: first + index, createdMs: undefined }));

/** Returns what a version may do under these minimums. */
export function useOf(version: number, key: Pick<Key, 'latest' | 'minDecryption' | 'minEncryption'>): VersionUse {
  if (version < key.minDecryption) return 'nothing';
  return version >= (key.minEncryption === 0 ? key.latest : key.minEncryption) ? 'encrypts' : 'decrypts';
}
