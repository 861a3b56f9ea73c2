import { nextTurn, TimeSlice } from '@transitd/event-loop';
import { pagesBelow, type RangePage, type Store } from '@transitd/storage-fsm';
import { noBytes } from '../algorithms/aead.ts';
import { wipe } from '../values/secrets.ts';
import { derivePair } from './derivation.ts';
import type { StoredKey, StoredVersion } from './key.ts';
import { loadedVersion, VersionGone } from './key-cache.ts';
import { type KeyRecord, usableVersion } from './key-record.ts';
import { keyType } from './key-type.ts';
import { type VersionView, versionView } from './key-view.ts';
import type { Paths } from './paths.ts';
import { decodeVersionRecord, type VersionRecord } from './version-record.ts';

/** A version's record and its number. */
export interface NumberedVersion extends VersionRecord {
  readonly version: number;
}

/** Reads one version with its revision. The caller wipes its secrets. @throws VersionGone */
export async function storedVersion(
  store: Store,
  paths: Paths,
  { id: keyId }: KeyRecord,
  version: number,
): Promise<StoredVersion> {
  const stored = await store.get(paths.version({ keyId, version }));
  if (stored === undefined) throw new VersionGone(`version ${version} of a key is missing`);
  return { version, revision: stored.revision, record: decodeVersionRecord(stored.value) };
}

/**
 * Reads all versions of a key from `first` to `last`, ascending. The caller wipes their secrets.
 * @throws VersionGone when one is missing, which also happens when the key has changed since its record was read
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
    const versions: NumberedVersion[] = [];
    const slice = new TimeSlice();
    for (const { path, value } of records) {
      if (slice.isOver) await slice.next();
      versions.push({ ...decodeVersionRecord(value), version: paths.parseVersion(path).version });
    }
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
 * Runs `read`, which reads versions of a loaded key.
 * @returns undefined when a version is missing because another node changed the key in the meantime: start over
 * @throws VersionGone when a version is missing and the key has not changed
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

/** Number of derivations between two turns of the event loop: a few milliseconds of work. */
const derivationsPerTurn = 20;

/**
 * Reads the versions that a `KeyView` shows.
 * @param context - selects the public key of a derived key pair; otherwise empty
 */
export async function visibleVersions(
  store: Store,
  paths: Paths,
  record: KeyRecord,
  context: Uint8Array = noBytes,
): Promise<VersionView[]> {
  const { id: keyId, minDecryptionVersion } = record;
  const latestVersion = usableVersion(record);
  // The derived key of a cipher is secret; only key pairs have a public half to show.
  const derives = record.derived && context.length > 0 && keyType(record.type).keyPair !== undefined;
  const versions: VersionView[] = [];
  const after = paths.version({ keyId, version: minDecryptionVersion - 1 });
  for await (const records of pagesBelow(store, { prefix: paths.versionsOf(keyId), after })) {
    try {
      for (const { path, value } of records) {
        const { version } = paths.parseVersion(path);
        if (version > latestVersion) continue;
        if (derives && versions.length % derivationsPerTurn === derivationsPerTurn - 1) await nextTurn();
        const stored = { ...decodeVersionRecord(value), version };
        versions.push(versionView(record, stored, derives ? derivedPublicKey(record, stored, context) : undefined));
      }
    } finally {
      wipe(records);
    }
  }
  return versions;
}

function derivedPublicKey(record: KeyRecord, version: VersionRecord, context: Uint8Array): Uint8Array | undefined {
  const type = keyType(record.type);
  const { key } = loadedVersion({ record, type }, version);
  const pair = key && derivePair(type, key, context, record.kdf);
  pair?.material.fill(0);
  return pair?.publicKey;
}
