import { setImmediate } from 'node:timers/promises';
import { dataReply, type Reply } from '@transitd/http';

const stepsMax = 20;
const recordsPerStep = 500;

/**
 * Deletes records that cannot be used any longer. The node's maintenance deletes those that one call leaves.
 * @param sweep - checks about `limit` records, and returns how many it deleted, and whether none is left
 */
export async function tidyReply(
  records: string,
  sweep: (limit: number) => Promise<{ readonly removed: number; readonly finished: boolean }>,
): Promise<Reply> {
  let deleted = 0;
  for (let step = 0; step < stepsMax; step++) {
    if (step > 0) await setImmediate();
    const { removed, finished } = await sweep(recordsPerStep);
    deleted += removed;
    if (finished) break;
  }
  return { ...dataReply(null, [`${deleted} ${records} were deleted`]), status: 202 };
}
