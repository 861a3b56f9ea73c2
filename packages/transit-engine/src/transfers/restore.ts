import type { Store, Transaction } from '@transitd/storage-fsm';
import { aged, agingOf, agingSettings } from '../keys/aging.ts';
import { dueWrites } from '../keys/due.ts';
import { type StoredKey, unconfirmedWrites } from '../keys/key.ts';
import { encodeKeyRecord, type KeyRecord } from '../keys/key-record.ts';
import { newRecord } from '../keys/new-version.ts';
import type { Paths } from '../keys/paths.ts';
import { encodeVersionRecord } from '../keys/version-record.ts';
import { commitAndWipe } from '../values/secrets.ts';
import type { KeyBackup } from './key-backup.ts';

/** Version records in one transaction, so that no transaction grows with a key's history. */
const versionsPerTransaction = 1000;

/** The key of the name, if there is one, which a restore replaces. */
export type Replaced = Pick<StoredKey, 'name' | 'revision'> & { readonly record?: KeyRecord };

/**
 * Writes the versions under a new key id, then the key's record in one transaction. Until the key's record is written, the versions are
 * unreachable, and after a failure the sweep deletes them. If the sweep of another node, which has become active, deletes versions of a
 * restore in progress, it deletes the lowest version first, and the last transaction conflicts.
 * @param replaced - the existing key, or its absence; if this has changed by the end, the key is not restored
 * @param id - the new key id
 * @param utcMs - as in `aged`; dates the restore, before which the key may have been used elsewhere
 * @param isHeld - see {@link newRecord}
 * @returns whether the key was restored; if not, something changed in the meantime
 */
export async function restoreKey(
  store: Store,
  paths: Paths,
  replaced: Replaced,
  { record: { aging: before, spentVersions: _, ...settings }, versions }: KeyBackup, // its uses are counted from zero
  { id, nowMs, utcMs, isHeld }: { readonly id: string; readonly nowMs: number; readonly utcMs: number; readonly isHeld: boolean },
): Promise<boolean> {
  const { name } = replaced;
  // The time of old versions begins anew: they may be the reason for the restore.
  const aging = agingOf({}, agingSettings({ ...(before && { aging: before }) }));
  const restored: KeyRecord = {
    ...settings,
    ...(aging && { aging }),
    id,
    latestCreatedMs: Math.min(settings.latestCreatedMs, nowMs),
    restore: { timeMs: utcMs, version: settings.latestVersion },
  };
  const record = aged(newRecord(restored, isHeld), utcMs);
  let firstRevision = 0;
  for (let at = 0; at < versions.length; at += versionsPerTransaction) {
    // A creation time in the future would postpone automatic rotation, possibly forever.
    const part = versions
      .slice(at, at + versionsPerTransaction)
      .map((each) => ({ ...each, createdMs: Math.min(each.createdMs, nowMs) }));
    const transaction = versionWrites(paths, name, record.id, part);
    const revision = await commitAndWipe(store, transaction);
    if (revision === undefined) return false;
    if (at === 0) firstRevision = revision;
  }
  const lowest = paths.version({ keyId: record.id, version: versions[0]?.version ?? 0 });
  const { outcome } = await store.commit({
    conditions: [
      { path: paths.key(name), revision: replaced.revision },
      { path: lowest, revision: firstRevision },
    ],
    writes: [
      { path: paths.key(name), value: encodeKeyRecord(record) },
      ...dueWrites(paths, name, { before: replaced.record, after: record }),
      ...unconfirmedWrites(paths, name, record),
    ],
  });
  return outcome === 'committed';
}

function versionWrites(paths: Paths, name: string, keyId: string, versions: KeyBackup['versions']): Transaction {
  const writes = versions.map(({ version, ...fresh }) => ({
    path: paths.version({ keyId, version }),
    value: encodeVersionRecord({ ...fresh, keyName: name }),
  }));
  return { conditions: writes.map(({ path }) => ({ path, revision: 0 })), writes };
}
