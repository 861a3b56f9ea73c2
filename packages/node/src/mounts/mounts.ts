import { randomUUID } from 'node:crypto';
import type { Store, Write } from '@transitd/storage-fsm';
import { z } from 'zod';

/** Where an engine answers, and the id under which its records lie: a mount can move, its records never do. */
export type Mount = Readonly<z.output<typeof mountShape>>;

/** A move that was made. */
export interface Move {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

/** Every mount, by no order but that of their making; no path is the beginning of another. */
export interface MountTable {
  readonly mounts: readonly Mount[];
  /** The newest last. */
  readonly moves: readonly Move[];
}

/** Before it: every record that tells of mounts. */
export const mountsPath = 'core/mounts';
const removedPrefix = 'core/mounts-removed/';
/** Written with the removal of a mount, and there until none of its records is. */
export const removedPath = (mountId: string): string => removedPrefix + mountId;
export const allRemoved = removedPrefix;
/** The mount whose removal the record at `path` tells; undefined for any other record. */
export const removedIn = (path: string): string | undefined =>
  path.startsWith(removedPrefix) ? path.slice(removedPrefix.length) : undefined;

/** Before every record of a mount. */
export const recordsOf = (mountId: string): string => `transit/${mountId}/`;

const mountShape = z.object({
  /** Segments without slashes at the ends. */
  path: z.string(),
  type: z.literal('transit'),
  id: z.string(),
  ciphertextPrefix: z.string(),
  description: z.string().default(''),
  options: z.record(z.string(), z.string()).default({}),
  local: z.boolean().default(false),
  sealWrap: z.boolean().default(false),
  /** Seconds, as is the next; 0 leaves it to the node. */
  defaultTtlS: z.number().default(0),
  maxTtlS: z.number().default(0),
  /** Names of managed keys that it may use beside those for any mount. */
  allowedManagedKeys: z.array(z.string()).readonly().default([]),
});

/** Format 1 had nothing but paths, ids and prefixes. */
const tableShape = z.object({
  format: z.union([z.literal(1), z.literal(2)]),
  mounts: z.array(mountShape),
  moves: z.array(z.object({ id: z.string(), from: z.string(), to: z.string() })).default([]),
});
const format = 2;

/** A transit engine that has no records yet. */
export const newMount = (path: string, ciphertextPrefix: string): Mount =>
  mountShape.parse({ path, type: 'transit', id: randomUUID(), ciphertextPrefix });

/** The mounts of a new cluster: one transit engine. */
export const initialMounts = (ciphertextPrefix: string): Write =>
  writtenMounts({ mounts: [newMount('transit', ciphertextPrefix)], moves: [] });

export const writtenMounts = ({ mounts, moves }: MountTable): Write => ({
  path: mountsPath,
  value: Buffer.from(JSON.stringify({ format, mounts, moves })),
});

/** @throws Error when the record is missing or of an unknown format: then the node cannot serve */
export async function readMounts(store: Store): Promise<{ readonly table: MountTable; readonly revision: number }> {
  const record = await store.get(mountsPath);
  if (record === undefined) throw new Error(`the record ${mountsPath} is missing`);
  const parsed = tableShape.safeParse(JSON.parse(Buffer.from(record.value).toString('utf8')));
  if (!parsed.success) throw new Error(`the record ${mountsPath} has an unknown format`);
  return { table: parsed.data, revision: record.revision };
}
