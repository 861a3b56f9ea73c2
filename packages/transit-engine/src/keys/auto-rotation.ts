import { pagesBelow, type Store, StoreError, type Write } from '@transitd/storage-fsm';
import { TransitError } from '../values/errors.ts';
import type { KeyRecord } from './key-record.ts';
import type { DuePlace, Paths } from './paths.ts';

/** Returns when automatic rotation is due, in Unix milliseconds; undefined for a key without automatic rotation. */
export function dueMs({ autoRotatePeriodS, latestCreatedMs, imported, allowRotation }: KeyRecord): number | undefined {
  if (autoRotatePeriodS === 0 || (imported && !allowRotation)) return undefined;
  return Math.min(latestCreatedMs + autoRotatePeriodS * 1000, Number.MAX_SAFE_INTEGER);
}

/**
 * Returns the writes that keep the index of due times in step with a key. They are part of every transaction that writes or deletes the
 * key's record, so the index and the records never disagree.
 */
export function dueWrites(
  paths: Paths,
  name: string,
  { before, after }: { readonly before: KeyRecord | undefined; readonly after: KeyRecord | undefined },
): Write[] {
  const [old, next] = [before && dueMs(before), after && dueMs(after)];
  if (old === next) return [];
  const writes: Write[] = [];
  if (old !== undefined) writes.push({ path: paths.dueAt({ dueMs: old, name }), value: null });
  if (next !== undefined) writes.push({ path: paths.dueAt({ dueMs: next, name }), value: dueMark });
  return writes;
}

/** The path contains all the information, but every record needs a value. */
const dueMark = Uint8Array.of(1);

/** Whether a key still has this due time. While its newest version is unconfirmed, it gets no further one. */
export const isDue = <K extends { readonly record: KeyRecord }>(key: K | undefined, place: DuePlace): key is K =>
  key !== undefined && dueMs(key.record) === place.dueMs && key.record.confirmedVersion === undefined;

/** Rotates the key with this name and returns its new version; undefined if it is not due any more. */
export type DueRotation = (name: string, rotate: () => Promise<number | undefined>) => Promise<number | undefined>;

/** The outcome of a round of rotations. @property failed - the keys that were tried and could not be rotated */
export interface DueRotations {
  readonly rotated: number;
  readonly failed: readonly { readonly name: string; readonly error: unknown }[];
}

/** Bounds of the pause after a failure; each further one doubles it. */
const [pauseMsMin, pauseMsMax] = [10_000, 3_600_000];

/** When keys that could not be rotated are tried again, by their names. Each attempt is audited. */
export type RotationPauses = ReadonlyMap<string, { readonly untilMs: number; readonly pauseMs: number }>;

/**
 * Rotates the keys whose automatic rotation is due, and reads only those. A key that cannot be rotated does not stop the others.
 * @param rotate - rotates one key if it is still due, and returns whether it did
 * @param limit - maximum number of rotations
 * @param before - the `pauses` of the round before
 */
export async function rotateDue(
  { store, paths, nowMs }: { readonly store: Store; readonly paths: Paths; readonly nowMs: number },
  limit: number,
  before: RotationPauses,
  rotate: (place: DuePlace) => Promise<boolean>,
): Promise<DueRotations & { readonly pauses: RotationPauses }> {
  let rotated = 0;
  const failed: { name: string; error: unknown }[] = [];
  const pauses = new Map<string, { readonly untilMs: number; readonly pauseMs: number }>();
  for await (const records of pagesBelow(store, { prefix: paths.due }))
    for (const { path } of records) {
      const place = paths.parseDue(path);
      if (place.dueMs > nowMs || rotated === limit) return { rotated, failed, pauses };
      const paused = before.get(place.name);
      // A clock that was set back does not prolong a pause.
      if (paused !== undefined && nowMs < paused.untilMs && paused.untilMs - nowMs <= paused.pauseMs) {
        pauses.set(place.name, paused);
        continue;
      }
      try {
        if (await rotate(place)) rotated += 1;
      } catch (error) {
        if (!concernsOneKey(error)) throw error;
        const pauseMs = paused === undefined ? pauseMsMin : Math.min(2 * paused.pauseMs, pauseMsMax);
        pauses.set(place.name, { untilMs: nowMs + pauseMs, pauseMs });
        failed.push({ name: place.name, error });
      }
    }
  return { rotated, failed, pauses };
}

/**
 * Damaged records and refusals concern one key. A store that cannot write concerns all keys, and so do a secondary that is absent and an
 * audit that cannot record the rotation.
 */
function concernsOneKey(error: unknown): boolean {
  if (error instanceof StoreError) return error.code === 'too_large';
  const { code } = error as { readonly code?: unknown };
  return code !== 'audit_failed' && !(error instanceof TransitError && code === 'unconfirmed');
}
