import type { Store } from '@transitd/storage-fsm';
import { allRemoved, recordsOf, removedIn } from './mounts.ts';

/**
 * Deletes records of a removed mount. The record of the removal is deleted together with the last of them. The records alone show what is
 * left to do, so the task continues after a crash or a change of leader. Only the active node calls this function.
 * @param limit - maximum number of records to delete
 * @returns how many were deleted, and whether there are no removed mounts left
 */
export async function sweepRemovedMounts(
  store: Store,
  limit: number,
): Promise<{ readonly removed: number; readonly finished: boolean }> {
  const [removal] = (await store.range({ prefix: allRemoved, limit: 1 })).records;
  const mountId = removal && removedIn(removal.path);
  if (removal === undefined || mountId === undefined) return { removed: 0, finished: true };
  const { records, next } = await store.range({ prefix: recordsOf(mountId), limit });
  for (const { value } of records) value.fill(0);
  const paths = records.map(({ path }) => path);
  if (next === undefined) paths.push(removal.path);
  const { outcome } = await store.commit({
    conditions: [{ path: removal.path, revision: removal.revision }],
    writes: paths.map((path) => ({ path, value: null })),
  });
  return { removed: outcome === 'committed' ? records.length : 0, finished: false };
}
