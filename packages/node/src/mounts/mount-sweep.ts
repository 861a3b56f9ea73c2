import type { Store } from '@transitd/storage-fsm';
import { allRemoved, recordsOf, removedIn } from './mounts.ts';

/**
 * Deletes records of mounts that were removed, and with the last of a mount's the record that tells of its removal. What is due is
 * found from the records alone, so a crash or a change of leader loses nothing of the task. Only the active node calls it.
 * @param limit - records at most
 * @returns how many were deleted, and whether there may be more
 */
export async function sweepRemovedMounts(
  store: Store,
  limit: number,
): Promise<{ readonly removed: number; readonly finished: boolean }> {
  const [mark] = (await store.range({ prefix: allRemoved, limit: 1 })).records;
  const mountId = mark && removedIn(mark.path);
  if (mark === undefined || mountId === undefined) return { removed: 0, finished: true };
  const { records, next } = await store.range({ prefix: recordsOf(mountId), limit });
  for (const { value } of records) value.fill(0);
  const paths = records.map(({ path }) => path);
  if (next === undefined) paths.push(mark.path);
  const { outcome } = await store.commit({
    conditions: [{ path: mark.path, revision: mark.revision }],
    writes: paths.map((path) => ({ path, value: null })),
  });
  return { removed: outcome === 'committed' ? records.length : 0, finished: false };
}
