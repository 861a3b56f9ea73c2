import type { RangePage, Store } from '@transitd/storage-fsm';
import { wipe } from '../secrets.ts';
import { unchanged } from './key.ts';
import { decodeKeyRecord } from './key-record.ts';
import type { Paths, VersionPlace } from './paths.ts';
import { decodeVersionRecord } from './version-record.ts';

/** How far a sweep came. */
export interface SweepProgress {
  /** The path behind which the next call goes on; empty for the beginning. */
  readonly cursor: string;
  /** Whether the end was reached. */
  readonly finished: boolean;
  /** Version records deleted. */
  readonly removed: number;
}

/**
 * Deletes version records that no key can reach: those of a deleted key, and those below a key's lowest available version. It
 * goes from key id to key id and finds what is due from the records alone, so a crash loses nothing of its task. Only the
 * active node runs it.
 * @param limit - key ids looked at plus records deleted, about
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
    // An id from which something was deleted may have more: it comes up again until nothing of it is due.
    if (deleted === 0) at = paths.afterVersionsOf(lowest.keyId);
  }
  return { cursor: at, finished: false, removed };
}

/** Where a version belongs. Its record is wiped. */
function placeOf(paths: Paths, record: RangePage['records'][number]): VersionPlace & { readonly name: string } {
  try {
    return { ...paths.parseVersion(record.path), name: decodeVersionRecord(record.value).keyName };
  } finally {
    wipe([record]);
  }
}

/** Deletes up to `limit` version records of one key id that are due, given the lowest there is. @returns how many */
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
  const due = records.map(({ path }) => path).filter((path) => paths.parseVersion(path).version < firstKept);
  // What is due once stays due. The condition makes sure that it was read from the newest state.
  const conditions = [unchanged(paths, { name, revision: stored?.revision ?? 0 })];
  const { outcome } = await store.commit({ conditions, writes: due.map((path) => ({ path, value: null })) });
  return outcome === 'committed' ? due.length : 0;
}
