import { z } from 'zod';
import { parseHostAndPort, parseMembers } from '../membership/membership.ts';
import type { ToldMembers } from '../membership/membership-list.ts';
import { type SignedList, signedList } from '../membership/signed-list.ts';

/** What a node says of itself with each echo. */
export const echoNews = z.object({
  name: z.string().max(64),
  apiAddress: z.url({ protocol: /^https?$/ }).max(256),
  clusterAddress: z
    .string()
    .max(256)
    .refine((text) => parseHostAndPort(text) !== undefined),
  appliedIndex: z.int().min(0),
  /** Its `cluster_heartbeat_interval`: for how long an answer lets it serve. */
  intervalMs: z.int().min(1),
  /** It answers requests from its own replica while echoes are answered. */
  serves: z.boolean(),
  sealed: z.boolean(),
  /** Median time that a write to its log took in the last seconds, in ms; absent where nothing was written, or by an older node. */
  writeMs: z.number().min(0).optional(),
  /** Its records are others than the active node's at one index. */
  differs: z.boolean().default(false),
  version: z.string().max(64),
  hostname: z.string().max(255).default(''),
  /** It reads member lists that name authorities; an older node does not say so. */
  readsAuthorities: z.boolean().default(false),
  /** Index of the newest signed membership list that it has seen; an answer brings a newer one. */
  listIndex: z.int().min(0).default(0),
});
export type EchoNews = z.output<typeof echoNews>;

const mode = z.enum(['disabled', 'primary', 'secondary', 'bootstrapping', 'unknown']);

/** What the active node answers, while it holds a lease: everything acknowledged by then lies at or below `commitIndex`. */
export const echoAnswer = z.object({
  commitIndex: z.int().min(0),
  utcMs: z.number(),
  /** What the active node's records came to, after the entry at `index`. */
  state: z.object({ index: z.int().min(0), digest: z.string().regex(/^[0-9a-f]{64}$/) }).optional(),
  replication: z.object({ performance: mode, disasterRecovery: mode }),
  list: signedList.optional(),
});

/** A newer node may say more: what is not known is left out. */
export type EchoReply = z.output<typeof echoAnswer>;

const otherInterval = z.object({ intervalMs: z.int().min(1) });

/** The active node's interval, where that is why it refuses; undefined when it does not say. */
export const intervalTold = (json: unknown): number | undefined => otherInterval.safeParse(json).data?.intervalMs;

const refusal = z.object({ committed: z.object({ index: z.int().min(0), members: z.array(z.unknown()) }) });

/** Whom a node that is not the active one knows to be members; undefined when it does not say. @throws Error for an ill-formed list */
export function membersTold(json: unknown): ToldMembers | undefined {
  const said = refusal.safeParse(json);
  if (!said.success) return undefined;
  const { index, members } = said.data.committed;
  return { index, members: parseMembers(members) };
}

const withList = z.object({ list: signedList });

/** The signed membership list in an answer, unverified; undefined where it has none. */
export const listShown = (json: unknown): SignedList | undefined => withList.safeParse(json).data?.list;
