import { type RangePage, type Store, StoreError } from '@transitd/storage-fsm';
import type { DuePlace, Paths } from './paths.ts';

/**
 * Rotates the keys whose automatic rotation is due, reading nothing but what is due; a key that cannot be rotated does not stop the others.
 * @param rotate - one key, if it is still due; whether it was
 * @param limit - rotations at most
 */
export async function rotateDue(
  store: Store,
  paths: Paths,
  nowMs: number,
  limit: number,
  rotate: (place: DuePlace) => Promise<boolean>,
): Promise<{ readonly rotated: number; readonly failed: number }> {
  let [rotated, failed] = [0, 0];
  let after: string | undefined = paths.due;
  while (after !== undefined) {
    const page: RangePage = await store.range({ prefix: paths.due, after });
    for (const { path } of page.records) {
      const place = paths.parseDue(path);
      if (place.dueMs > nowMs || rotated === limit) return { rotated, failed };
      try {
        if (await rotate(place)) rotated += 1;
      } catch (error) {
        if (!isOfOneKey(error)) throw error;
        failed += 1;
      }
    }
    after = page.next;
  }
  return { rotated, failed };
}

/** Whether other keys may still be changed: damage and refusals are one key's, a store that does not write is everyone's. */
const isOfOneKey = (error: unknown): boolean => !(error instanceof StoreError) || error.code === 'too_large';
