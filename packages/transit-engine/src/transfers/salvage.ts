import { decodeKeyRecord } from '../keys/key-record.ts';
import type { Paths } from '../keys/paths.ts';
import { decodeVersionRecord } from '../keys/version-record.ts';
import { TransitError } from '../values/errors.ts';
import { wipe } from '../values/secrets.ts';
import { checkBackup, type KeyBackup } from './key-backup.ts';

/** Reads records of another state of the store, in plaintext, by their paths. Missing records are left out. The caller wipes the values. */
export type ReadRecords = (paths: readonly string[]) => Promise<ReadonlyMap<string, Uint8Array>>;

/**
 * Reads a key from another state of its mount.
 * @returns a key whose versions the caller wipes
 * @throws TransitError `key_not_found`, `invalid_request`; DamagedRecord
 */
export async function archivedKey(paths: Paths, name: string, read: ReadRecords): Promise<KeyBackup> {
  const stored = (await read([paths.key(name)])).get(paths.key(name));
  if (stored === undefined) throw new TransitError('key_not_found', 'the snapshot has no such key in this mount');
  const { id, restore: _, confirmedVersion: __, scheduledDeletionMs: ___, ...record } = decodeKeyRecord(stored);
  const first = Math.max(record.minAvailableVersion, 1);
  const places = Array.from({ length: record.latestVersion - first + 1 }, (_, at) => {
    const version = first + at;
    return { version, path: paths.version({ keyId: id, version }) };
  });
  const records = await read(places.map(({ path }) => path));
  try {
    const versions = places.flatMap(({ version, path }) => {
      const value = records.get(path);
      if (value === undefined) return [];
      const { keyName: _, ...fresh } = decodeVersionRecord(value);
      return [{ ...fresh, version }];
    });
    const key = { name, record, versions };
    await checkBackup(key);
    return key;
  } catch (error) {
    wipe([...records.values()].map((value) => ({ value })));
    throw error;
  }
}
