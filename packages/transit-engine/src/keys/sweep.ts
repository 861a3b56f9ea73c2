import type { Store } from '@transitd/storage-fsm';
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

/** Number of names that are read at once. The versions of one key are skipped after the page that begins them. */
const pageNames = 100;

/**
 * Deletes unreachable version records: those of deleted keys, and with them the record of their uses, and those below a key's lowest
 * available version. It walks over the key ids and decides from the records alone, so it needs no state that a crash could lose. Only the
 * active node runs it.
 * @param limit - approximate maximum of key ids read plus records deleted
 * @param isKept - returns whether the versions of a key id stay, although no name refers to them yet
 */
export async function sweepVersions(
  store: Store,
  paths: Paths,
  { cursor, limit, isKept }: { readonly cursor: string; readonly limit: number; readonly isKept: (keyId: string) => boolean },
): Promise<SweepProgress> {
  let [at, removed, work] = [cursor, 0, 0];
  while (work < limit) {
    const page = await store.paths({ prefix: paths.versions, limit: pageNames, ...(at !== '' && { after: at }) });
    let isChanged = false;
    for (const lowest of lowestVersions(paths, page.paths)) {
      const deleted = isKept(lowest.keyId) ? 0 : await deleteUnreachable(store, paths, lowest, limit - work);
      removed += deleted ?? 0;
      work += 1 + (deleted ?? 0);
      // A key id of which records were deleted, here or meanwhile, may have more: it is read again until nothing is left to delete.
      isChanged = deleted !== 0;
      if (!isChanged) at = paths.afterVersionsOf(lowest.keyId);
      if (isChanged || work >= limit) break;
    }
    if (isChanged || work >= limit) continue;
    if (page.next === undefined) return { cursor: '', finished: true, removed };
    if (page.next > at) at = page.next; // no record of this page is visible
  }
  return { cursor: at, finished: false, removed };
}

/** Returns the first place of each key id, given ascending paths of versions. */
function lowestVersions(paths: Paths, versions: readonly string[]): VersionPlace[] {
  const places = versions.map((path) => paths.parseVersion(path));
  return places.filter(({ keyId }, at) => keyId !== places[at - 1]?.keyId);
}

/**
 * Deletes up to `limit` unreachable version records of one key id, given its lowest version. Returns the number of deleted records;
 * undefined if the lowest version was deleted meanwhile.
 */
async function deleteUnreachable(store: Store, paths: Paths, lowest: VersionPlace, limit: number): Promise<number | undefined> {
  const name = await keyNameOf(store, paths.version(lowest));
  if (name === undefined) return undefined;
  const { keyId } = lowest;
  const stored = await store.get(paths.key(name));
  const key = stored && decodeKeyRecord(stored.value);
  const firstKept = key?.id === keyId ? key.minAvailableVersion : Number.POSITIVE_INFINITY;
  if (lowest.version >= firstKept) return 0;
  const { records } = await store.range({ prefix: paths.versionsOf(keyId), limit });
  wipe(records);
  const unreachable = records.map(({ path }) => path).filter((path) => paths.parseVersion(path).version < firstKept);
  // An unreachable record stays unreachable. The condition ensures that the key was read from the newest state.
  const conditions = [unchanged(paths, { name, revision: stored?.revision ?? 0 })];
  const gone = key === undefined ? [...unreachable, paths.usage(name)] : unreachable;
  const { outcome } = await store.commit({ conditions, writes: gone.map((path) => ({ path, value: null })) });
  return outcome === 'committed' ? unreachable.length : 0;
}

/** Returns the name of the key that a version belongs to; undefined if the version was deleted meanwhile. */
async function keyNameOf(store: Store, path: string): Promise<string | undefined> {
  const stored = await store.get(path);
  if (stored === undefined) return undefined;
  try {
    return decodeVersionRecord(stored.value).keyName;
  } finally {
    wipe([stored]);
  }
}
