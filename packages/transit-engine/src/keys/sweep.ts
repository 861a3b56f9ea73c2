import type { RangePage, Store } from '@transitd/storage-fsm';
import { wipe } from '../values/secrets.ts';
import { unchanged } from './key.ts';
import { decodeKeyRecord } from './key-record.ts';
import type { Paths, VersionPlace } from './paths.ts';
import { decodeVersionRecord } from './version-record.ts';

/** Progress of a sweep. */
export interface SweepProgress {
  /** The next call continues after this path; empty for the beginning. */
  readonly cursor: string;
  /** Whether the end was reached. */
  readonly finished: boolean;
  /** Version records deleted. */
  readonly removed: number;
}

/**
 * Deletes unreachable version records: those of deleted keys, and those below a key's lowest available version. It walks over the key
 * ids and decides from the records alone, so it needs no state that a crash could lose. Only the active node runs it.
 * @param limit - approximate maximum of key ids read plus records deleted
 */
export async function sweepVersions(store: Store, paths: Paths, cursor: string, limit: number): Promise<SweepProgress> {
  let [at, removed, work] = [cursor, 0, 0];
  while (work < limit) {
    const { records } = await store.range({ prefix: paths.versions, limit: 1, ...(at !== '' && { after: at }) });
    const first = records[0];
    if (first === undefined) return { cursor: '', finished: true, removed };
    const lowest = placeOf(paths, first);
    const deleted = await deleteUnreachable(store, paths, lowest, limit - work);
    removed += deleted;
    work += 1 + deleted;
    // A key id with deleted records may have more, so it is read again until nothing is left to delete.
    if (deleted === 0) at = paths.afterVersionsOf(lowest.keyId);
  }
  return { cursor: at, finished: false, removed };
}

/** Returns the location of a version and the name of its key, and wipes the record. */
function placeOf(paths: Paths, record: RangePage['records'][number]): VersionPlace & { readonly name: string } {
  try {
    return { ...paths.parseVersion(record.path), name: decodeVersionRecord(record.value).keyName };
  } finally {
    wipe([record]);
  }
}

/** Deletes up to `limit` unreachable version records of one key id, given its lowest version. Returns the number of deleted records. */
async function deleteUnreachable(
  store: Store,
  paths: Paths,
  { keyId, version: lowest, name }: VersionPlace & { readonly name: string },
  limit: number,
): Promise<number> {
  const stored = await store.get(paths.key(name));
  const key = stored && decodeKeyRecord(stored.value);
  const firstKept = key?.id === keyId ? key.minAvailableVersion : Number.POSITIVE_INFINITY;
  if (lowest >= firstKept) return 0;
  const { records } = await store.range({ prefix: paths.versionsOf(keyId), limit });
  wipe(records);
  const unreachable = records.map(({ path }) => path).filter((path) => paths.parseVersion(path).version < firstKept);
  // An unreachable record stays unreachable. The condition ensures that the key was read from the newest state.
  const conditions = [unchanged(paths, { name, revision: stored?.revision ?? 0 })];
  const { outcome } = await store.commit({ conditions, writes: unreachable.map((path) => ({ path, value: null })) });
  return outcome === 'committed' ? unreachable.length : 0;
}
