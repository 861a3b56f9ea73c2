import type { Write } from '@transitd/storage-fsm';
import type { KeyRecord } from './key-record.ts';
import type { Paths } from './paths.ts';

/** When a key rotates by itself, in Unix milliseconds; undefined for one that does not. */
export function dueMs({ autoRotatePeriodS, latestCreatedMs, imported, allowRotation }: KeyRecord): number | undefined {
  if (autoRotatePeriodS === 0 || (imported && !allowRotation)) return undefined;
  return Math.min(latestCreatedMs + autoRotatePeriodS * 1000, Number.MAX_SAFE_INTEGER);
}

/**
 * What keeps the index of due times in step with a key: part of every transaction that writes or deletes the key's record, so that the
 * index and the records never disagree.
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

/** The path says everything; a value has to be there all the same. */
const dueMark = Uint8Array.of(1);
