import type { RangePage, Store } from '@transitd/storage-fsm';
import type { StoredKey, StoredVersion } from './key.ts';
import { VersionGone } from './key-cache.ts';
import type { KeyRecord } from './key-record.ts';
import type { Paths } from './paths.ts';
import { decodeVersionRecord, type VersionRecord, wipe } from './version-record.ts';

/** A version's record and its number. */
export interface NumberedVersion extends VersionRecord {
  readonly version: number;
}

/** One version with its revision, whose secrets whoever asks wipes. @throws VersionGone */
export async function storedVersion(
  store: Store,
  paths: Paths,
  { id: keyId }: KeyRecord,
  version: number,
): Promise<StoredVersion> {
  const stored = await store.get(paths.version({ keyId, version }));
  if (stored === undefined) throw new VersionGone(`version ${version} of a key is gone`);
  return { version, revision: stored.revision, record: decodeVersionRecord(stored.value) };
}

/**
 * The versions of a key from `first` to `last`, ascending, all of them; whoever asks wipes their secrets.
 * @throws VersionGone when one is not there, which is so too when the key has changed since its record was read
 */
export async function versionsBetween(
  store: Store,
  paths: Paths,
  { id: keyId }: KeyRecord,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<NumberedVersion[]> {
  const records: RangePage['records'][number][] = [];
  try {
    let after: string | undefined = paths.version({ keyId, version: first - 1 });
    while (after !== undefined && records.length <= last - first) {
      const page: RangePage = await store.range({
        prefix: paths.versionsOf(keyId),
        after,
        limit: last - first + 1 - records.length,
      });
      records.push(...page.records);
      after = page.next;
    }
    const versions = records.map(({ path, value }) => ({
      ...decodeVersionRecord(value),
      version: paths.parseVersion(path).version,
    }));
    if (versions.some(({ version }, index) => version !== first + index) || versions.length !== last - first + 1) {
      throw new VersionGone(`a key lacks one of its versions ${first} to ${last}`);
    }
    return versions;
  } catch (error) {
    wipe(records);
    throw error;
  }
}

/**
 * Reads versions of a key as it was loaded.
 * @returns undefined, which starts over, when another node took a version away on the way
 * @throws VersionGone when the key is as it was
 */
export async function unlessGone<T>(
  store: Store,
  paths: Paths,
  { name, revision }: StoredKey,
  read: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof VersionGone)) throw error;
    if ((await store.get(paths.key(name)))?.revision === revision) throw error;
    return undefined;
  }
}
