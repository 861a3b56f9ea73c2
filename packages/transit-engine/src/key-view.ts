import type { RangePage, Store } from '@transitd/storage-fsm';
import type { Kdf, KeyRecord } from './key-record.ts';
import { keyType } from './key-type.ts';
import type { Paths } from './paths.ts';
import { decodeVersionRecord, wipe } from './version-record.ts';

/** When a version was made, in Unix milliseconds. */
export interface VersionView {
  readonly version: number;
  readonly createdMs: number;
}

/** What a caller may see of a key; it holds no key material. */
export interface KeyView extends Omit<KeyRecord, 'id' | 'convergent' | 'kdf' | 'convergentVersion' | 'latestCreatedMs'> {
  readonly name: string;
  /** Index of the log entry that last wrote the key. */
  readonly revision: number;
  readonly supportsEncryption: boolean;
  readonly supportsDecryption: boolean;
  readonly supportsSigning: boolean;
  readonly supportsDerivation: boolean;
  /** This and the next on derived keys only. */
  readonly kdf?: Kdf;
  readonly convergentEncryption?: boolean;
  /** On convergent keys only: -1 stands for "each version has its own", which is 3 on keys made here. */
  readonly convergentEncryptionVersion?: -1 | 1 | 2;
  /** From `minDecryptionVersion` to the latest, ascending. */
  readonly versions: readonly VersionView[];
}

export function keyView(
  { name, record, revision }: { name: string; record: KeyRecord; revision: number },
  versions: readonly VersionView[],
): KeyView {
  const { id, convergent, kdf, convergentVersion, latestCreatedMs, ...settings } = record;
  const { supportsEncryption, supportsDecryption, supportsSigning, supportsDerivation } = keyType(record.type);
  return {
    ...settings,
    name,
    revision,
    supportsEncryption,
    supportsDecryption,
    supportsSigning,
    supportsDerivation,
    ...(record.derived && { kdf, convergentEncryption: convergent }),
    ...(convergent && { convergentEncryptionVersion: convergentVersion }),
    versions,
  };
}

/** The versions that {@link KeyView} shows, from their records. */
export async function visibleVersions(store: Store, paths: Paths, record: KeyRecord): Promise<VersionView[]> {
  const { id: keyId, minDecryptionVersion, latestVersion } = record;
  const versions: VersionView[] = [];
  let after: string | undefined = paths.version({ keyId, version: minDecryptionVersion - 1 });
  while (after !== undefined) {
    const page: RangePage = await store.range({ prefix: paths.versionsOf(keyId), after });
    try {
      for (const { path, value } of page.records) {
        const { version } = paths.parseVersion(path);
        if (version <= latestVersion) versions.push({ version, createdMs: decodeVersionRecord(value).createdMs });
      }
    } finally {
      wipe(page.records);
    }
    after = page.next;
  }
  return versions;
}
