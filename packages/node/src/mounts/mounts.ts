import { randomUUID } from 'node:crypto';
import { JsonRecord, Refusal, type Store, type Write } from '@transitd/storage-fsm';
import { z } from 'zod';

/** A mounted engine: its path, and the id that prefixes its records. A mount can move, its records do not. */
export type Mount = Readonly<z.output<typeof mountShape>>;

export interface Move {
  readonly id: string;
  readonly from: string;
  readonly to: string;
}

/** All mounts in the order of their creation. No path is a prefix of another. */
export interface MountTable {
  readonly mounts: readonly Mount[];
  /** Remembered moves, the newest last. */
  readonly moves: readonly Move[];
}

/** `mount_removed`: the mount was removed while a request for it ran. */
type MountErrorCode = 'invalid_mount' | 'mount_removed';

/** A refused change of the mounts, or a request for a removed mount. The message reaches the caller. */
export class MountError extends Refusal<MountErrorCode> {}

/** The refusal of a request for a removed mount has the same text as for a path where nothing was ever mounted. */
export const mountRemoved = ({ path }: Pick<Mount, 'path'>): MountError =>
  new MountError('mount_removed', `no handler for route "${path}/". route entry not found.`);

/** Path of the record of the mount table, and prefix of the paths of all records about mounts. */
export const mountsPath = 'core/mounts';
/** Prefix of the paths of the records of all removals. */
export const removedPrefix = 'core/mounts-removed/';
/** Path of the record of a removal. The record is written with the removal and deleted with the last record of the mount. */
export const removedPath = (mountId: string): string => removedPrefix + mountId;
/** Returns the id of the removed mount if `path` belongs to the record of a removal; undefined for any other record. */
export const removedIn = (path: string): string | undefined =>
  path.startsWith(removedPrefix) ? path.slice(removedPrefix.length) : undefined;

/** Returns the name of a mount that audit entries and lists show. It does not change when the mount moves. */
export const accessorOf = ({ type, id }: Pick<Mount, 'type' | 'id'>): string => `${type}_${id.slice(0, 8)}`;

/** Returns the prefix of all records of a mount. */
export const recordsOf = (mountId: string): string => `transit/${mountId}/`;

const mountShape = z.object({
  /** Without a slash at either end. */
  path: z.string(),
  type: z.literal('transit'),
  id: z.string(),
  ciphertextPrefix: z.string(),
  description: z.string(),
  options: z.record(z.string(), z.string()),
  local: z.boolean(),
  sealWrap: z.boolean(),
  externalEntropyAccess: z.boolean(),
  /** In seconds, as is `maxTtlS`; 0 for the node's default. */
  defaultTtlS: z.number(),
  maxTtlS: z.number(),
  /** Names of the managed keys that this mount may use, besides those for any mount. */
  allowedManagedKeys: z.array(z.string()).readonly(),
  inert: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string()).readonly()])),
});

const moveShape = z.object({ id: z.string(), from: z.string(), to: z.string() });
const mountsRecord = new JsonRecord<MountTable>(mountsPath, z.object({ mounts: z.array(mountShape), moves: z.array(moveShape) }));

/** Returns a mount with a new id, and so without records. */
export const newMount = (path: string, ciphertextPrefix: string): Mount => ({
  path,
  type: 'transit',
  id: randomUUID(),
  ciphertextPrefix,
  description: '',
  options: {},
  local: false,
  sealWrap: false,
  externalEntropyAccess: false,
  defaultTtlS: 0,
  maxTtlS: 0,
  allowedManagedKeys: [],
  inert: {},
});

/** Returns the record with the mounts of a new cluster: one transit engine. */
export const initialMounts = (ciphertextPrefix: string): Write =>
  writtenMounts({ mounts: [newMount('transit', ciphertextPrefix)], moves: [] });

export const writtenMounts = ({ mounts, moves }: MountTable): Write => mountsRecord.written({ mounts, moves });

/** @throws Error when the record is missing or has an unknown format: the services cannot be loaded then */
export async function readMounts(store: Store): Promise<{ readonly table: MountTable; readonly revision: number }> {
  const record = await mountsRecord.read(store);
  if (record === undefined) throw new Error(`cannot read the mounts: the record ${mountsPath} is missing`);
  return { table: record.value, revision: record.revision };
}

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
  const [removal] = (await store.range({ prefix: removedPrefix, limit: 1 })).records;
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
