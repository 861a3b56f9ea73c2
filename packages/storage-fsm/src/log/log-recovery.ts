import { randomInt } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { Entry, NodeId } from '@transitd/raft-core';
import type { Disk } from '../directory/disk.ts';
import type { NodeState } from '../directory/node-state.ts';
import { damaged, newerFormat } from '../errors.ts';
import { LogView } from './log-view.ts';
import type { LogRecord } from './record.ts';
import { decodeSegmentHeader, type SegmentScan, scanSegment } from './segment.ts';
import { createSegment, listSegments, type SegmentFile, segmentPath } from './segment-file.ts';

/** A log as it is found at start, all of it durable. */
export interface RecoveredLog {
  readonly view: LogView;
  /** By ascending number; the last one takes the next records. */
  readonly segments: SegmentFile[];
  /** Checksum of the newest record. */
  readonly chainEnd: number;
  /** Configuration entries above the base. */
  readonly confEntries: readonly Entry[];
}

/** Where a log lies and what `node.state` knows of it. */
interface LogPlace {
  readonly disk: Disk;
  readonly directory: string;
  readonly state: NodeState;
}

interface ScannedSegment {
  readonly segment: SegmentFile;
  readonly bytes: Buffer;
  readonly scan: SegmentScan;
}

/**
 * Reads the log, decides whether it is whole, and only then cuts what a batch left that was being written at the end.
 * @throws StorageDamaged if entries may be missing that were acknowledged
 */
export async function recoverLog(place: LogPlace): Promise<RecoveredLog> {
  if (place.state.incarnation === 0) await completeCreation(place);
  const segments: SegmentFile[] = [];
  try {
    const replay = new Replay(place.state);
    const last = await readSegments(place, segments, replay);
    const found = replay.finish(last.segment.path);
    await settle(last);
    await removeRubbish(place);
    return { segments, chainEnd: last.scan.chainEnd, ...found };
  } catch (error) {
    await Promise.all(segments.map(({ file }) => file.close()));
    throw error;
  }
}

/** A node is made by its `node.state`; the first segment follows here, before the first start is recorded there. */
async function completeCreation({ disk, directory, state }: LogPlace): Promise<void> {
  await disk.makeDirectory(directory);
  for (const above of [dirname(directory), dirname(dirname(directory))]) await disk.syncDirectory(above);
  const { numbers } = await listSegments(disk, directory);
  if (numbers.length === 0) await createFirstSegment(disk, directory, { number: state.firstSegment, nodeId: state.nodeId });
}

/** A log without an entry, durable. The directory is there. */
export async function createFirstSegment(
  disk: Disk,
  directory: string,
  { number, nodeId }: { readonly number: number; readonly nodeId: NodeId },
): Promise<void> {
  const { file } = await createSegment(disk, directory, { number, nodeId, chainStart: randomInt(2 ** 32) });
  await file.close();
}

/**
 * Opens all segments in force into `segments`, replays them and returns the last one. A segment is begun only when all before it
 * is synced, and says with what record that ended: so only the last one may have a torn end.
 */
async function readSegments(place: LogPlace, segments: SegmentFile[], replay: Replay): Promise<ScannedSegment> {
  const { numbers } = await listSegments(place.disk, place.directory);
  const lastNumber = numbers.at(-1) ?? 0;
  let number = place.state.firstSegment;
  let before: { readonly path: string; readonly chainEnd: number } | undefined;
  for (;;) {
    const scanned = await readSegment(place, number);
    const { segment, scan } = scanned;
    segments.push(segment);
    const { path, header } = segment;
    if (before !== undefined && before.chainEnd !== header.chainStart)
      throw damaged(before.path, `does not end with the entry that ${path} goes on from`);
    if (scan.tail === 'damaged')
      throw damaged(path, `has an unreadable entry at byte ${scan.end}, and entries were stored after it`);
    for (const record of scan.records) replay.add(record, segment);
    if (number >= lastNumber) return scanned;
    before = { path, chainEnd: scan.chainEnd };
    number += 1;
  }
}

async function readSegment({ disk, directory, state }: LogPlace, number: number): Promise<ScannedSegment> {
  const path = segmentPath(directory, number);
  const file = await disk.open(path);
  if (file === undefined) throw damaged(path, 'is missing');
  try {
    const size = await file.size();
    const bytes = await file.read({ position: 0, bytes: size });
    const header = decodeSegmentHeader(bytes);
    if (header === undefined) throw damaged(path, 'has an unreadable beginning');
    if (header === 'newer') throw newerFormat(path);
    if (header.number !== number || header.nodeId !== state.nodeId) throw damaged(path, 'was written for another place or node');
    const scan = scanSegment(bytes, header);
    return { segment: { header, path, file, end: scan.end, size }, bytes, scan };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Builds the log in force from its records, in the order in which they were written. */
class Replay {
  readonly #state: NodeState;
  #view: LogView | undefined;
  #confEntries: Entry[] = [];

  constructor(state: NodeState) {
    this.#state = state;
  }

  add({ term, index, type, data, offset, bytes }: LogRecord, { header, path }: SegmentFile): void {
    // the first one kept, or one that supersedes all of those: what it follows was dropped
    if (this.#view === undefined || index < this.#view.firstIndex) this.#view = new LogView({ index: index - 1, term: 0 });
    const termBefore = this.#view.termAt(index - 1);
    if (termBefore === undefined || termBefore > term)
      throw damaged(path, `has an entry at byte ${offset} that does not follow those before it`);
    this.#view.append({ term, index, segment: header.number, offset, bytes });
    while ((this.#confEntries.at(-1)?.index ?? 0) >= index) this.#confEntries.pop();
    if (type === 'conf') this.#confEntries.push({ term, index, type, data: Buffer.from(data) });
  }

  /** @param path - the last segment, which is named when something is missing */
  finish(path: string): { view: LogView; confEntries: readonly Entry[] } {
    const { base, mark, term } = this.#state;
    const view = this.#view ?? new LogView(base);
    if (view.lastIndex < mark.index)
      throw damaged(path, `ends with entry ${view.lastIndex} although entry ${mark.index} was stored`);
    if (view.firstIndex > base.index + 1) throw damaged(path, `does not reach back to entry ${base.index + 1}`);
    for (const { index, term } of [base, mark])
      if ((view.at(index)?.term ?? term) !== term)
        throw damaged(path, `holds another entry ${index} than the one that was stored last`);
    if ((view.termAt(view.lastIndex) ?? 0) > term)
      throw damaged(path, `holds an entry of a later term than ${term}, the newest this node knows of`);
    view.dropUpTo(base);
    return { view, confEntries: this.#confEntries.filter(({ index }) => index > base.index) };
  }
}

/**
 * Cuts a torn end, and writes the last batch once more: what was read may have been in memory only, and after a sync that failed
 * the system takes such pages for clean, so that a sync alone would do nothing.
 */
async function settle({ segment, bytes, scan }: ScannedSegment): Promise<void> {
  const { file, end } = segment;
  if (scan.tail === 'torn') await file.truncate(end);
  const batchStart = scan.records.at(-1)?.batchStart ?? end;
  await file.write(batchStart, bytes.subarray(batchStart, end));
  await file.sync();
  segment.size = await file.size();
}

/** Segments below the base and those half made, left by a crash. */
async function removeRubbish({ disk, directory, state }: LogPlace): Promise<void> {
  const { numbers, rest } = await listSegments(disk, directory);
  for (const number of numbers) if (number < state.firstSegment) await disk.remove(segmentPath(directory, number));
  for (const name of rest) if (name.endsWith('.log.new')) await disk.remove(join(directory, name));
  await disk.syncDirectory(directory);
}
