import { z } from 'zod';
import { levelRange } from '../membership/member-levels.ts';
import { type CommittedMembers, memberSchema, parseMembers } from '../membership/membership.ts';
import { type SignedList, signedList } from '../membership/signed-list.ts';

export const heartbeatPath = '/cluster/echo';

/** The body of a heartbeat: what a node reports about itself. */
export const heartbeatRequestSchema = z.object({
  name: z.string().max(64),
  apiAddress: memberSchema.shape.apiAddress,
  clusterAddress: memberSchema.shape.clusterAddress,
  appliedIndex: z.int().min(0),
  /** The sender's `cluster_heartbeat_interval`, which decides how long the sender may serve after an answer. */
  intervalMs: z.int().min(1),
  /** Whether the sender is a performance standby: it serves reads from its own state while its heartbeats are answered. */
  serves: z.boolean(),
  sealed: z.boolean(),
  /** Median time of recent writes to the sender's log, in ms; absent when nothing was written. */
  writeMs: z.number().min(0).optional(),
  /** Whether free space on the sender's data disk is below its reserve. */
  diskLow: z.boolean(),
  /** State digest mismatch: the sender's records differ from the active node's at one index. */
  differs: z.boolean(),
  version: z.string().max(64),
  hostname: z.string().max(255),
  levels: levelRange,
  /** Index of the newest signed membership list that the sender has. If the active node has a newer list, its answer contains that list. */
  listIndex: z.int().min(0),
});
export type HeartbeatRequest = z.output<typeof heartbeatRequestSchema>;

const mode = z.enum(['disabled', 'primary', 'secondary', 'bootstrapping', 'unknown']);

/** The active node's answer, given while it holds a lease: every entry acknowledged by then is at or below `commitIndex`. */
export const heartbeatReplySchema = z.object({
  commitIndex: z.int().min(0),
  utcMs: z.number(),
  /** State digest of the active node after the entry at `index`. */
  state: z.object({ index: z.int().min(0), digest: z.string().regex(/^[0-9a-f]{64}$/) }).optional(),
  replication: z.object({ performance: mode, disasterRecovery: mode }),
  list: signedList.optional(),
});

/** Fields that only a newer release knows are dropped. */
export type HeartbeatReply = z.output<typeof heartbeatReplySchema>;

const otherInterval = z.object({ intervalMs: z.int().min(1) });

/** Returns the active node's interval from its refusal of a heartbeat with another interval; undefined when the answer has none. */
export const intervalIn = (json: unknown): number | undefined => otherInterval.safeParse(json).data?.intervalMs;

const refusal = z.object({ committed: z.object({ index: z.int().min(0), members: z.array(z.unknown()) }) });

/**
 * Returns the committed members in the answer of a node that is not active; undefined when the answer has none.
 * @throws Error when malformed
 */
export function committedMembersIn(json: unknown): CommittedMembers | undefined {
  const read = refusal.safeParse(json);
  if (!read.success) return undefined;
  const { index, members } = read.data.committed;
  return { index, members: parseMembers(members) };
}

const withList = z.object({ list: signedList });

/** Returns the signed membership list in an answer, unverified; undefined when the answer has none. */
export const signedListIn = (json: unknown): SignedList | undefined => withList.safeParse(json).data?.list;
