import { JsonRecord, type Store, type Write } from '@transitd/storage-fsm';
import { z } from 'zod';
import type { KeyVersionUse, UsageReport } from './usage-wire.ts';

/** Path of the record that says which uses are recorded. It is written with them. */
export const marksPath = 'core/usage';

const marksShape = z.object({
  /** The cluster that counts. A secondary that was promoted has another id, and begins to count again. */
  clusterId: z.string(),
  /** The restore that its records come from; absent if there was none. */
  restoredBy: z.string().optional(),
  /** Since then every node counts, in Unix milliseconds; absent while some node does not. */
  sinceMs: z.number().optional(),
  /**
   * By node name: its process, and the newest batch of that process that is recorded. `ended`: no uses can follow. `goneMs`: since when it
   * is not among the members, although it has not ended.
   */
  nodes: z.record(
    z.string(),
    z.object({ process: z.string(), batch: z.int(), ended: z.literal(true).optional(), goneMs: z.number().optional() }),
  ),
});

export type UsageMarks = Readonly<z.output<typeof marksShape>>;

const marksRecord = new JsonRecord(marksPath, marksShape);

/** Where the records come from that the marks belong to. */
export interface MarksOrigin {
  readonly clusterId: string;
  readonly restoredBy: string | undefined;
}

const emptyMarks = ({ clusterId, restoredBy }: MarksOrigin): UsageMarks => ({
  clusterId,
  ...(restoredBy !== undefined && { restoredBy }),
  nodes: {},
});

/** Most nodes of which the newest batch is remembered; of more, those that ended first are forgotten. */
const nodesMax = 64;

/** How long a node may be away from the members and return with its uses, in milliseconds: on etcd, connections may be lost. */
const goneMsMax = 600_000;

/** The answer of one node. `unsupported`: its release does not count. */
export interface NodeAnswer {
  readonly name: string;
  readonly answer: UsageReport | 'silent' | 'unsupported';
}

/** The mark of a node that has not answered yet. */
const notSeen: UsageMarks['nodes'][string] = { process: '', batch: 0 };

/** Returns what is recorded of a node. */
export const recordedOf = ({ nodes }: UsageMarks, name: string): UsageMarks['nodes'][string] =>
  (Object.hasOwn(nodes, name) ? nodes[name] : undefined) ?? notSeen;

/**
 * Decides what to record of the answers: the uses of batches that are not recorded yet, and the marks after that. A batch that is reported
 * again, because an answer or the outcome of a transaction was lost, counts once.
 *
 * Counting begins when every node has answered. It begins again, so that nobody takes lost uses for no uses: if a node lost uses; if it was
 * started again, or is no longer a member, and its last process did not end with all its uses recorded; if a node with a release that does
 * not count takes part; and if the records come from a restore, are older than a node knows, or are those of another cluster, as after a
 * promotion.
 * @param nowMs - by the later clock: counting must not seem to have begun earlier than it did
 * @returns also `lost`, why counting begins again, and `gone`, the names of former members whose uses may still come
 */
export function mergedAnswers(
  marks: UsageMarks,
  answers: readonly NodeAnswer[],
  { nowMs, ...origin }: MarksOrigin & { readonly nowMs: number },
): {
  readonly marks: UsageMarks;
  readonly uses: readonly KeyVersionUse[];
  readonly lost: string | undefined;
  readonly gone: readonly string[];
} {
  const nodes = new Map(Object.entries(marks.nodes));
  const uses: KeyVersionUse[] = [];
  let isComplete = true;
  let lost: string | undefined;
  if (marks.clusterId !== origin.clusterId) lost = 'the cluster has another id';
  else if (marks.restoredBy !== origin.restoredBy) lost = 'a snapshot was restored';
  for (const { name, answer } of answers) {
    if (answer === 'unsupported') lost = `${name} has a release that does not count`;
    if (answer === 'silent' || answer === 'unsupported') {
      isComplete = false;
      if (!nodes.has(name)) nodes.set(name, notSeen); // it may count already, and leave before it answers
      continue;
    }
    const { process, follows, merged, batch } = answer;
    const known = recordedOf(marks, name);
    if (known.process !== process && known.process !== follows) lost = `the last process of ${name} did not end regularly`;
    const recorded = known.process === process ? known.batch : 0;
    const isNew = batch !== undefined && batch.number > recorded;
    if (isNew) uses.push(...batch.uses);
    uses.push(...answer.rest);
    if (!answer.isComplete) isComplete = false;
    if (merged > recorded) lost = `the records are older than ${name} knows`;
    if (isNew && batch.hasLost) lost = `${name} could not count all uses`;
    const next = Math.max(recorded, merged, batch?.number ?? 0);
    const ended = answer.isLast && answer.isComplete;
    if (known.process === process && next === recorded && (known.ended ?? false) === ended && known.goneMs === undefined)
      continue;
    nodes.delete(name); // the node that changed last comes last
    nodes.set(name, { process, batch: next, ...(ended && { ended }) });
  }
  const members = new Set(answers.map(({ name }) => name));
  const gone: string[] = [];
  for (const [name, node] of nodes) {
    const { ended, goneMs = nowMs } = node;
    if (ended || members.has(name)) continue;
    if (nowMs - goneMs <= goneMsMax) {
      nodes.set(name, { ...node, goneMs });
      gone.push(name);
    } else {
      nodes.delete(name);
      lost = `${name} left, and its last process did not end regularly`;
    }
  }
  const ended = [...nodes].filter(([name, node]) => node.ended && !members.has(name));
  for (const [name] of ended.slice(0, Math.max(nodes.size - nodesMax, 0))) nodes.delete(name);
  const begun = isComplete ? nowMs : undefined;
  const sinceMs = lost === undefined ? (marks.sinceMs ?? begun) : begun;
  return {
    marks: {
      ...emptyMarks(origin),
      nodes: Object.fromEntries(nodes),
      ...(sinceMs !== undefined && { sinceMs }),
    },
    uses,
    lost,
    gone,
  };
}

/** Returns the names of the nodes whose uses are not all known. */
export const unansweredIn = (answers: readonly NodeAnswer[]): readonly string[] =>
  answers.filter(({ answer }) => typeof answer === 'string' || !answer.isComplete).map(({ name }) => name);

/** Returns the stored marks; those of a cluster that has recorded nothing yet if there are none. */
export async function readMarks(
  store: Pick<Store, 'get'>,
  origin: MarksOrigin,
): Promise<{ readonly marks: UsageMarks; readonly revision: number }> {
  const { value: marks, revision } = (await marksRecord.read(store)) ?? { value: emptyMarks(origin), revision: 0 };
  return { marks, revision };
}

export const writtenMarks = (marks: UsageMarks): Write => marksRecord.written(marks);
