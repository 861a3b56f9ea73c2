import { CodecError, type LogIndex, type SnapshotMeta } from '@transitd/raft-core';
import type { FeatureLevel } from '../level/feature-levels.ts';
import { decodeLevel, levelName } from '../level/level-record.ts';
import type { KeyValueMachine } from '../state/key-value-machine.ts';
import { addToDigest, emptyDigest } from '../store/digest.ts';
import type { Row } from '../store/range.ts';
import {
  acceptsWrites,
  isForeignIndex,
  type ReplicationState,
  recoveredReplicationState,
  replicationName,
} from '../store/replication-state.ts';
import { type RestoredRecord, type RestoreStep, restoredDigest } from '../store/restore-step.ts';
import { decodeSpaces, noSpaces, type Spaces, spacesName, visiblePath } from '../store/spaces.ts';
import { type CommitResult, type Replica, StoreError } from '../store/store.ts';
import { readSnapshot, readVerifiedSnapshot } from './snapshot-stream.ts';

/** The summary of a complete snapshot. */
export interface SnapshotSummary {
  /** Index, term and configuration of the state. */
  readonly meta: SnapshotMeta;
  /** Number of records, including unreachable ones that a restore had not yet cleared. */
  readonly records: number;
  readonly valuesWritten: number;
  readonly digest: bigint;
  /** The feature level of the state. */
  readonly level: FeatureLevel;
  /** The state of replication between clusters; undefined if the cluster never took part in it. */
  readonly replication: ReplicationState | undefined;
}

/** Reads a snapshot, checks all of it and returns its summary. @throws CodecError, and errors of `source` */
export async function inspectSnapshot(source: AsyncIterable<Uint8Array>): Promise<SnapshotSummary> {
  let meta: SnapshotMeta | undefined;
  let level: FeatureLevel = decodeLevel(undefined);
  let replication: ReplicationState | undefined;
  for await (const part of readVerifiedSnapshot(source)) {
    if (part.type === 'meta') meta = part.meta;
    if (part.type === 'records') {
      level = levelIn(part.rows) ?? level;
      replication ??= replicationIn(part.rows);
    }
    if (part.type !== 'end' || meta === undefined) continue;
    const { valuesWritten, digest } = part.state;
    return { meta, records: part.records, valuesWritten, digest, level, replication };
  }
  throw new CodecError('the snapshot is truncated');
}

function levelIn(rows: readonly Row[]): FeatureLevel | undefined {
  const record = rows.find(({ path }) => path === levelName);
  return record && decodeLevel(record.value);
}

function replicationIn(rows: readonly Row[]): ReplicationState | undefined {
  const record = rows.find(({ path }) => path === replicationName);
  return record && recoveredReplicationState(record.value);
}

/**
 * Returns single records of a snapshot by the paths under which readers saw them; missing records are left out.
 * @throws CodecError, and errors of `source`
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
  /** Name of this attempt: 1 to 64 letters, digits and hyphens. A call with the same name and snapshot continues the attempt. */
  readonly attempt: string;
  /** Path prefixes whose records stay as they are, whatever the snapshot holds: records of this cluster rather than of the state. */
  readonly keep?: readonly string[];
  /** Called after each entry with the number of staged records. */
  readonly onProgress?: (staged: number) => void;
  /** Commits the entry that makes the staged records the state. By default it is the `swap` of the restore. */
  readonly replace?: (staged: RestorableTotals) => Promise<CommitResult>;
}

/** `superseded`: another attempt has begun, or this one was abandoned; the state is unchanged. */
export interface RestoreOutcome {
  readonly outcome: 'restored' | 'superseded';
  readonly records: number;
  /** Index of the restore's last entry. */
  readonly index: LogIndex;
}

/** Limits of one entry: applying it must not block the event loop for long. */
const stagedRecordsMax = 1000;
const stagedBytesMax = 512 * 1024;

/**
 * Replaces the state with the records of a snapshot, through the log: entries stage the records where no reader sees them, and one last
 * entry makes them the state, atomically on every node. Until that entry the old state stays current, whatever fails.
 * @param open - opens the snapshot from its beginning; it is read twice, because nothing is proposed before all of it has been checked
 * @throws CodecError when the snapshot is incomplete or empty
 * @throws StoreError of a commit, such as `not_leader`: call again on the leader with the same attempt to continue
 */
export async function restoreSnapshot(
  replica: Pick<Replica, 'commit' | 'status'>,
  open: () => AsyncIterable<Uint8Array>,
  { attempt, keep = [], onProgress, replace }: RestoreOptions,
): Promise<RestoreOutcome> {
  const commit = (restore: RestoreStep): Promise<CommitResult> => replica.commit({ restore });
  if (replica.status().role !== 'leader') throw new StoreError('not_leader', 'this node is not the leader');
  const expected = await restorableTotals(open(), keep);
  if (expected.records === 0) throw new CodecError('the snapshot holds no record to restore');
  let chunk = 0;
  let staged = 0;
  for await (const records of chunksOf(open(), keep)) {
    const { outcome, index } = await commit({ kind: 'stage', attempt, chunk, records });
    if (outcome === 'conflict') return { outcome: 'superseded', records: staged, index };
    chunk += 1;
    staged += records.length;
    onProgress?.(staged);
  }
  const { outcome, index } = await (replace?.(expected) ?? commit({ kind: 'swap', attempt, ...expected, keep }));
  return { outcome: outcome === 'conflict' ? 'superseded' : 'restored', records: staged, index };
}

/**
 * Abandons the restore that is staged, unless it is `underWay`, and deletes all unreachable records, in entries of bounded size.
 * A leader calls this when its term begins and after each restore. It is safe to stop half-way.
 * @returns the number of deleted records
 * @throws StoreError of a commit
 */
export async function clearRestores(
  replica: Pick<Replica, 'commit'>,
  machine: Pick<KeyValueMachine, 'replication' | 'restoring' | 'unreachableNames'>,
  { underWay }: { readonly underWay?: string } = {},
): Promise<number> {
  const commit = (restore: RestoreStep): Promise<CommitResult> => replica.commit({ restore });
  const left = machine.restoring;
  // On a secondary it is a state that its primary sends; the next one replaces it.
  const isLeft = left !== undefined && left !== underWay && acceptsWrites(machine.replication);
  if (isLeft) await commit({ kind: 'abandon', attempt: left });
  let cleared = 0;
  for (;;) {
    const names = await machine.unreachableNames(stagedRecordsMax);
    if (names.length === 0) return cleared;
    await commit({ kind: 'sweep', names });
    cleared += names.length;
  }
}

/** The records of a snapshot that a restore writes. */
export interface RestorableTotals {
  readonly records: number;
  /** Sum of the digests of the records, each computed with revision 0: it is the same on every engine. */
  readonly digest: bigint;
  readonly valuesWritten: number;
}

/**
 * Returns the totals of the records that a restore of this snapshot would write: the swap checks them.
 * @param keep - as in {@link RestoreOptions}
 * @throws CodecError, and errors of `source`
 */
export async function restorableTotals(
  source: AsyncIterable<Uint8Array>,
  keep: readonly string[] = [],
): Promise<RestorableTotals> {
  const expected = { records: 0, digest: emptyDigest, valuesWritten: 0 };
  let spaces = noSpaces;
  for await (const part of readVerifiedSnapshot(source)) {
    if (part.type === 'end') expected.valuesWritten = part.state.valuesWritten;
    if (!isForeignIndex(expected.valuesWritten))
      throw new CodecError('the count of values written in the snapshot is above any that a cluster can have');
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
 * Yields the same records in the same chunks whenever the same snapshot is read, which makes an attempt repeatable. Their totals were
 * computed before, and the swap compares them.
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

/** Returns the spaces if these rows include them; their record sorts before all the records that they route to. */
function spacesIn(rows: readonly Row[]): Spaces | undefined {
  const record = rows.find(({ path }) => path === spacesName);
  return record && decodeSpaces(record.value);
}

/** Returns the records that readers of the snapshot's state saw, by path, except those below the prefixes to keep. */
function restored(rows: readonly Row[], spaces: Spaces, keep: readonly string[]): RestoredRecord[] {
  return rows.flatMap(({ path: name, value }) => {
    const path = visiblePath(spaces, name);
    return path === undefined || keep.some((prefix) => path.startsWith(prefix)) ? [] : [{ path, value }];
  });
}
