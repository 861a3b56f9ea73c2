import type { LogIndex, Term } from '@transitd/raft-core';
import type { FeatureLevel } from '../level/feature-levels.ts';
import { encodeLevel, levelName } from '../level/level-record.ts';
import { DigestSum } from '../store/digest.ts';
import type { Row } from '../store/range.ts';
import { writeSnapshot } from './snapshot-stream.ts';

/** The records of a cluster whose consensus is elsewhere. */
export interface RecordsOfState {
  /** At least as high as the revision of each record. */
  readonly index: LogIndex;
  readonly term: Term;
  readonly level: FeatureLevel;
  readonly valuesWritten: number;
  /** Ascending by path. */
  readonly rows: readonly Row[];
}

/**
 * Encodes records as a snapshot in the format of `NodeSnapshots.backup`, so that each engine can restore the backups of the others. It
 * names no members.
 */
export async function* snapshotOfRecords({ index, term, level, valuesWritten, rows }: RecordsOfState): AsyncGenerator<Buffer> {
  const sum = new DigestSum();
  const all = [{ path: levelName, value: encodeLevel(level), revision: index }, ...rows];
  for (const row of all) sum.add(row);
  const meta = { appliedIndex: index, valuesWritten, digest: sum.digest };
  yield* writeSnapshot({ meta, pages: () => pagesOf(all) }, { index, term, conf: noMembers, confIndex: 0 });
}

const noMembers = {
  voters: [],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
  context: new Uint8Array(),
};

const pageRows = 1000;

async function* pagesOf(rows: readonly Row[]): AsyncGenerator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += pageRows) yield rows.slice(at, at + pageRows);
}
