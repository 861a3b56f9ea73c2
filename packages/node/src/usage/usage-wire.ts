import { z } from 'zod';

const count = z.int().min(0);

const versionUse = z.object({
  /** The id of the mount. */
  mount: z.string(),
  name: z.string(),
  id: z.string(),
  version: z.int().min(1),
  encryptions: count,
  decryptions: count,
  signatures: count,
  verifications: count,
  firstMs: z.int(),
  lastMs: z.int(),
});
/** The uses of one key version. The key is known by its id: its name may belong to another key later. */
export type KeyVersionUse = Readonly<z.output<typeof versionUse>>;

/**
 * A question of the active node. `next`: for the next batch of uses to record; the batches of this process up to `merged` are recorded.
 * `key`: for the uses of one key that are not recorded yet.
 */
export const usageQuestion = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('next'), process: z.string(), merged: count }),
  z.object({ kind: z.literal('key'), id: z.string() }),
]);
export type UsageQuestion = z.output<typeof usageQuestion>;

/** Stands for a process of which some uses may not be recorded. */
export const unknownProcess = 'unknown';

/** The uses that one node has counted and that may not be recorded yet. */
export const usageReport = z.object({
  /** Random, and other after each start of the node: the uses that a process has not reported end with it. */
  process: z.string(),
  /** The last process on the same data directory, if all its uses are recorded; empty if there was none. */
  follows: z.string().default(unknownProcess),
  /** No uses will follow after those of this answer. */
  isLast: z.boolean().default(false),
  /** Number of the newest batch that the active node has said to be recorded; 0 for none. */
  merged: count,
  /** Every thread of the node has reported its uses, and no batch to come will say that some are lost. */
  isComplete: z.boolean(),
  /** The batch that is to be recorded. It is the same until the active node says that it is recorded. */
  batch: z.object({ number: z.int().min(1), uses: z.array(versionUse), hasLost: z.boolean() }).optional(),
  /** Uses in no batch; in the answer to `key` only. */
  rest: z.array(versionUse),
  /** Further uses wait for the next batch. */
  hasMore: z.boolean(),
});
export type UsageReport = z.output<typeof usageReport>;
