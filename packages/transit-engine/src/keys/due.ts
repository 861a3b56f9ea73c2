import { pagesBelow, type Store, StoreError, type Write } from '@transitd/storage-fsm';
import { TransitError } from '../values/errors.ts';
import { trimDueMs } from './aging.ts';
import type { KeyRecord } from './key-record.ts';
import type { DueIndex, DuePlace, Paths } from './paths.ts';

/** Returns when automatic rotation is due, in Unix milliseconds; undefined for a key that does not rotate automatically at present. */
export function rotationDueMs(record: KeyRecord): number | undefined {
  const { autoRotatePeriodS, latestCreatedMs, imported, allowRotation, softDeleted } = record;
  if (autoRotatePeriodS === 0 || (imported && !allowRotation) || softDeleted) return undefined;
  return Math.min(latestCreatedMs + autoRotatePeriodS * 1000, Number.MAX_SAFE_INTEGER);
}

/** What a node does to keys by itself, with the time at which it is due for a key, in Unix milliseconds; undefined if it is not. */
const dueTimes = {
  rotations: rotationDueMs,
  trims: trimDueMs,
  deletions: ({ scheduledDeletionMs }) => scheduledDeletionMs,
} as const satisfies Readonly<Record<string, (record: KeyRecord) => number | undefined>>;
export type DueKind = keyof typeof dueTimes;
const dueKinds = Object.keys(dueTimes) as DueKind[];

/**
 * Returns the writes that keep the indexes of due times in step with a key. They are part of every transaction that writes or deletes the
 * key's record, so the indexes and the records never disagree.
 */
export function dueWrites(
  paths: Paths,
  name: string,
  { before, after }: { readonly before: KeyRecord | undefined; readonly after: KeyRecord | undefined },
): Write[] {
  return dueKinds.flatMap((kind) => {
    const [old, next] = [before && dueTimes[kind](before), after && dueTimes[kind](after)];
    if (old === next) return [];
    const removed = old === undefined ? [] : [{ path: paths[kind].path({ dueMs: old, name }), value: null }];
    const added = next === undefined ? [] : [{ path: paths[kind].path({ dueMs: next, name }), value: dueMark }];
    return [...removed, ...added];
  });
}

/** The path contains all the information, but every record needs a value. */
const dueMark = Uint8Array.of(1);

/** Whether a key still has this due time. A key whose newest version is unconfirmed is not rotated: it gets no further one. */
export const isDue = <K extends { readonly record: KeyRecord }>(kind: DueKind, key: K | undefined, place: DuePlace): key is K =>
  key !== undefined &&
  dueTimes[kind](key.record) === place.dueMs &&
  !(kind === 'rotations' && key.record.confirmedVersion !== undefined);

/**
 * Runs the change of the key with this name, and returns the version that it results in: the new one of a rotation, the oldest that is left
 * by a removal, the last one of a deleted key. Undefined if the change is not due any more.
 */
export type DueChange = (name: string, change: () => Promise<number | undefined>) => Promise<number | undefined>;

/** The outcome of a round. @property failed - the keys that were tried and could not be changed */
export interface DueRound {
  readonly done: number;
  readonly failed: readonly { readonly name: string; readonly error: unknown }[];
}

/** Bounds of the pause after a failure; each further one doubles it. */
const [pauseMsMin, pauseMsMax] = [10_000, 3_600_000];

/** When keys that could not be changed are tried again, by their names. Each attempt is audited. */
export type DuePauses = ReadonlyMap<string, { readonly untilMs: number; readonly pauseMs: number }>;

/**
 * Changes the keys of an index whose time has come, and reads only those. A key that cannot be changed does not stop the others.
 * @param change - changes one key if it is still due, and returns whether it did
 * @param limit - maximum number of changes
 * @param before - the `pauses` of the round before
 */
export async function changeDue(
  { store, index, nowMs }: { readonly store: Store; readonly index: DueIndex; readonly nowMs: number },
  limit: number,
  before: DuePauses,
  change: (place: DuePlace) => Promise<boolean>,
): Promise<DueRound & { readonly pauses: DuePauses }> {
  let done = 0;
  const failed: { name: string; error: unknown }[] = [];
  const pauses = new Map<string, { readonly untilMs: number; readonly pauseMs: number }>();
  for await (const records of pagesBelow(store, { prefix: index.prefix }))
    for (const { path } of records) {
      const place = index.parse(path);
      if (place.dueMs > nowMs || done === limit) return { done, failed, pauses };
      const paused = before.get(place.name);
      // A clock that was set back does not prolong a pause.
      if (paused !== undefined && nowMs < paused.untilMs && paused.untilMs - nowMs <= paused.pauseMs) {
        pauses.set(place.name, paused);
        continue;
      }
      try {
        if (await change(place)) done += 1;
      } catch (error) {
        if (!concernsOneKey(error)) throw error;
        const pauseMs = paused === undefined ? pauseMsMin : Math.min(2 * paused.pauseMs, pauseMsMax);
        pauses.set(place.name, { untilMs: nowMs + pauseMs, pauseMs });
        failed.push({ name: place.name, error });
      }
    }
  return { done, failed, pauses };
}

/**
 * Damaged records and refusals concern one key. A store that cannot write concerns all keys, and so do a secondary that is absent and an
 * audit that cannot record the change.
 */
function concernsOneKey(error: unknown): boolean {
  if (error instanceof StoreError) return error.code === 'too_large';
  const { code } = error as { readonly code?: unknown };
  return code !== 'audit_failed' && !(error instanceof TransitError && code === 'unconfirmed');
}
