import { CodecError, type LogIndex, type SnapshotMeta } from '@transitd/raft-core';
import type { KeyValueMachine } from '../state/state-machine.ts';
import { addToDigest, emptyDigest } from '../store/digest.ts';
import type { Row } from '../store/range.ts';
import { type RestoredRecord, type RestoreStep, restoredDigest } from '../store/restore-step.ts';
import { decodeSpaces, noSpaces, type Spaces, spacesName, visiblePath } from '../store/spaces.ts';
import { type CommitResult, type Replica, StoreError } from '../store/store.ts';
import { readSnapshot, readSummedSnapshot } from './snapshot-stream.ts';

/** What a whole snapshot is. */
export interface SnapshotSummary {
  /** Index, term and configuration that it was taken at. */
  readonly meta: SnapshotMeta;
  /** Records, those included that a restore had left to be cleared. */
  readonly records: number;
  readonly valuesWritten: number;
  readonly digest: bigint;
}

/** Reads a snapshot and checks all of it; changes nothing. @throws CodecError, and what `source` throws */
export async function inspectSnapshot(source: AsyncIterable<Uint8Array>): Promise<SnapshotSummary> {
  let meta: SnapshotMeta | undefined;
  for await (const part of readSummedSnapshot(source)) {
    if (part.type === 'meta') meta = part.meta;
    if (part.type !== 'end' || meta === undefined) continue;
    const { valuesWritten, digest } = part.state;
    return { meta, records: part.records, valuesWritten, digest };
  }
  throw new CodecError('the snapshot is cut short');
}

/**
 * Reads single records of a snapshot, by the paths under which its readers saw them; those that it lacks are left out.
 * @throws CodecError, and what `source` throws
 */
export async function recordsOfSnapshot(
  source: AsyncIterable<Uint8Array>,
  paths: readonly string[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  let spaces = noSpaces;
  for await (const part of readSnapshot(source)) {
    if (part.type !== 'records') continue;
    spaces = spacesIn(part.rows) ?? spaces;
    for (const { path, value } of restored(part.rows, spaces, [])) if (paths.includes(path)) found.set(path, Buffer.from(value));
    if (found.size === paths.length) break;
  }
  return found;
}

export interface RestoreOptions {
  /** Names this attempt, 1 to 64 letters, digits and hyphens. Calling again with the same name and snapshot goes on with it. */
  readonly attempt: string;
  /** Beginnings of paths whose records stay as they are, whatever the snapshot holds there: what belongs to this cluster, not to the state. */
  readonly keep?: readonly string[];
  /** Hears how many records are staged, after each entry. */
  readonly onProgress?: (staged: number) => void;
}

/** `superseded`: another attempt has begun meanwhile, or this one was given up; the state is as it was. */
export interface RestoreOutcome {
  readonly outcome: 'restored' | 'superseded';
  readonly records: number;
  /** Of the last entry. */
  readonly index: LogIndex;
}

/** Of one entry: applying it must not hold up the loop for long. */
const stagedRecordsMax = 1000;
const stagedBytesMax = 512 * 1024;

/**
 * Puts the records of a snapshot in the place of the state, through the log: they are staged where nobody reads, and one last entry
 * makes them the state, at once and on every node. Until then, and whatever fails before, the old state is in force.
 * @param open - gives the snapshot from its beginning; it is read twice, since nothing is proposed before all of it has been checked
 * @throws CodecError when the snapshot is not whole, or empty
 * @throws StoreError of a commit: `not_leader` and the like. Whoever leads then can be asked again, with the same attempt.
 */
export async function restoreSnapshot(
  replica: Pick<Replica, 'commit' | 'status'>,
  open: () => AsyncIterable<Uint8Array>,
  { attempt, keep = [], onProgress }: RestoreOptions,
): Promise<RestoreOutcome> {
  if (replica.status().role !== 'leader') throw new StoreError('not_leader', 'this node does not lead');
  const expected = await sumUp(open(), keep);
  if (expected.records === 0) throw new CodecError('the snapshot holds no record to restore');
  const commit = (restore: RestoreStep): Promise<CommitResult> => replica.commit({ conditions: [], writes: [], restore });

  let chunk = 0;
  let staged = 0;
  for await (const records of chunksOf(open(), keep)) {
    const { outcome, index } = await commit({ kind: 'stage', attempt, chunk, records });
    if (outcome === 'conflict') return { outcome: 'superseded', records: staged, index };
    chunk += 1;
    staged += records.length;
    onProgress?.(staged);
  }
  const { outcome, index } = await commit({ kind: 'swap', attempt, ...expected, keep });
  return { outcome: outcome === 'conflict' ? 'superseded' : 'restored', records: staged, index };
}

/**
 * Gives up the restore that is staged, unless it is the one named, and deletes what nothing leads to any more, in bounded entries.
 * To be called by a leader when it begins to lead and after each restore; stopping half-way is safe.
 * @returns how many records were deleted
 * @throws StoreError of a commit
 */
export async function clearRestores(
  replica: Pick<Replica, 'commit'>,
  machine: Pick<KeyValueMachine, 'restoring' | 'deadNames'>,
  { underWay }: { readonly underWay?: string } = {},
): Promise<number> {
  const commit = (restore: RestoreStep): Promise<CommitResult> => replica.commit({ conditions: [], writes: [], restore });
  const left = machine.restoring;
  if (left !== undefined && left !== underWay) await commit({ kind: 'abandon', attempt: left });
  let cleared = 0;
  for (;;) {
    const names = await machine.deadNames(stagedRecordsMax);
    if (names.length === 0) return cleared;
    await commit({ kind: 'sweep', names });
    cleared += names.length;
  }
}

async function sumUp(source: AsyncIterable<Uint8Array>, keep: readonly string[]) {
  const expected = { records: 0, digest: emptyDigest, valuesWritten: 0 };
  let spaces = noSpaces;
  for await (const part of readSummedSnapshot(source)) {
    if (part.type === 'end') expected.valuesWritten = part.state.valuesWritten;
    if (part.type !== 'records') continue;
    spaces = spacesIn(part.rows) ?? spaces;
    for (const record of restored(part.rows, spaces, keep)) {
      expected.records += 1;
      expected.digest = addToDigest(expected.digest, restoredDigest(record));
    }
  }
  return expected;
}

/**
 * The same records in the same chunks whenever the same snapshot is read: that is what makes an attempt repeatable. What they come to
 * has been summed up before, and the swap compares.
 */
async function* chunksOf(source: AsyncIterable<Uint8Array>, keep: readonly string[]): AsyncGenerator<RestoredRecord[]> {
  let spaces = noSpaces;
  let chunk: RestoredRecord[] = [];
  let bytes = 0;
  for await (const part of readSnapshot(source)) {
    if (part.type !== 'records') continue;
    spaces = spacesIn(part.rows) ?? spaces;
    for (const record of restored(part.rows, spaces, keep)) {
      if (chunk.length > 0 && (chunk.length >= stagedRecordsMax || bytes + record.value.length > stagedBytesMax)) {
        yield chunk;
        [chunk, bytes] = [[], 0];
      }
      chunk.push(record);
      bytes += record.value.length;
    }
  }
  yield chunk;
}

/** Sorts before every record that it speaks of. */
function spacesIn(rows: readonly Row[]): Spaces | undefined {
  const record = rows.find(({ path }) => path === spacesName);
  return record && decodeSpaces(record.value);
}

/** What readers of the snapshot's state saw, by their paths, but for what is kept here. */
function restored(rows: readonly Row[], spaces: Spaces, keep: readonly string[]): RestoredRecord[] {
  return rows.flatMap(({ path: name, value }) => {
    const path = visiblePath(spaces, name);
    return path === undefined || keep.some((prefix) => path.startsWith(prefix)) ? [] : [{ path, value }];
  });
}
