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

/** The log as found at start; all of it is durable. */
export interface RecoveredLog {
  readonly view: LogView;
  /** Ascending by number; the next records go to the last one. */
  readonly segments: SegmentFile[];
  /** Checksum of the newest record. */
  readonly chainEnd: number;
  /** Configuration entries above the base. */
  readonly confEntries: readonly Entry[];
}

/** The log's directory and what `node.state` says about it. */
interface LogLocation {
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
 * Reads the log, checks that it is complete, and only then cuts off the torn end of the batch that was being written when the node
 * stopped.
 * @throws StorageDamaged if acknowledged entries may be missing
 */
export async function recoverLog(location: LogLocation): Promise<RecoveredLog> {
  if (location.state.incarnation === 0) await completeCreation(location);
  const segments: SegmentFile[] = [];
  try {
    const replay = new Replay(location.state);
    const last = await readSegments(location, segments, replay);
    const found = replay.finish(last.segment.path);
    await rewriteLastBatch(last);
    await removeLeftovers(location);
    return { segments, chainEnd: last.scan.chainEnd, ...found };
  } catch (error) {
    await Promise.all(segments.map(({ file }) => file.close()));
    throw error;
  }
}

/** Creates the first segment of a new node, before the first start is recorded in its `node.state`. */
async function completeCreation({ disk, directory, state }: LogLocation): Promise<void> {
  await disk.makeDirectory(directory);
  for (const parent of [dirname(directory), dirname(dirname(directory))]) await disk.syncDirectory(parent);
  const { numbers } = await listSegments(disk, directory);
  if (numbers.length === 0) await createFirstSegment(disk, directory, { number: state.firstSegment, nodeId: state.nodeId });
}

/** Creates an empty log in an existing directory, durably. */
export async function createFirstSegment(
  disk: Disk,
  directory: string,
  { number, nodeId }: { readonly number: number; readonly nodeId: NodeId },
): Promise<void> {
  const { file } = await createSegment(disk, directory, { number, nodeId, chainStart: randomInt(2 ** 32) });
  await file.close();
}

/**
 * Opens all current segments into `segments`, replays them and returns the last one. A segment is begun only when everything before it is
 * synced, and its header holds the checksum of the last record before it: so only the last segment may have a torn end.
 */
async function readSegments(location: LogLocation, segments: SegmentFile[], replay: Replay): Promise<ScannedSegment> {
  const { numbers } = await listSegments(location.disk, location.directory);
  const lastNumber = numbers.at(-1) ?? 0;
  let number = location.state.firstSegment;
  let before: { readonly path: string; readonly chainEnd: number } | undefined;
  for (;;) {
    const scanned = await readSegment(location, number);
    const { segment, scan } = scanned;
    segments.push(segment);
    const { path, header } = segment;
    if (before !== undefined && before.chainEnd !== header.chainStart)
      throw damaged(before.path, `does not end with the entry that ${path} continues from`);
    if (scan.tail === 'damaged')
      throw damaged(path, `has an unreadable entry at byte ${scan.end}, and entries were stored after it`);
    for (const record of scan.records) replay.add(record, segment);
    if (number >= lastNumber) return scanned;
    before = { path, chainEnd: scan.chainEnd };
    number += 1;
  }
}

async function readSegment({ disk, directory, state }: LogLocation, number: number): Promise<ScannedSegment> {
  const path = segmentPath(directory, number);
  const file = await disk.open(path);
  if (file === undefined) throw damaged(path, 'is missing');
  try {
    const size = await file.size();
    const bytes = await file.read({ position: 0, bytes: size });
    const header = decodeSegmentHeader(bytes);
    if (header === undefined) throw damaged(path, 'has an unreadable header');
    if (header === 'newer') throw newerFormat(path);
    if (header.number !== number || header.nodeId !== state.nodeId)
      throw damaged(path, 'belongs to another position or another node');
    const scan = scanSegment(bytes, header);
    return { segment: { header, path, file, end: scan.end, size }, bytes, scan };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Builds the current log from its records, in the order in which they were written. */
class Replay {
  readonly #state: NodeState;
  #view: LogView | undefined;
  #confEntries: Entry[] = [];

  constructor(state: NodeState) {
    this.#state = state;
  }

  add({ term, index, type, data, offset, bytes }: LogRecord, { header, path }: SegmentFile): void {
    // This is the first record that is kept, or one that supersedes all records kept before it, so the entry before it was dropped.
    if (this.#view === undefined || index < this.#view.firstIndex) this.#view = new LogView({ index: index - 1, term: 0 });
    const termBefore = this.#view.termAt(index - 1);
    if (termBefore === undefined || termBefore > term)
      throw damaged(path, `has an entry at byte ${offset} that does not follow the entries before it`);
    this.#view.append({ term, index, segment: header.number, offset, bytes });
    while ((this.#confEntries.at(-1)?.index ?? 0) >= index) this.#confEntries.pop();
    if (type === 'conf') this.#confEntries.push({ term, index, type, data: Buffer.from(data) });
  }

  /** @param path - the last segment, for error messages */
  finish(path: string): { view: LogView; confEntries: readonly Entry[] } {
    const { base, mark, term } = this.#state;
    const view = this.#view ?? new LogView(base);
    if (view.lastIndex < mark.index)
      throw damaged(path, `ends with entry ${view.lastIndex} although entry ${mark.index} was stored`);
    if (view.firstIndex > base.index + 1) throw damaged(path, `does not reach back to entry ${base.index + 1}`);
    for (const { index, term } of [base, mark])
      if ((view.at(index)?.term ?? term) !== term)
        throw damaged(path, `holds entry ${index} with a different term from the one recorded in node.state`);
    if ((view.termAt(view.lastIndex) ?? 0) > term)
      throw damaged(path, `holds an entry of a later term than ${term}, the newest term that this node knows`);
    view.dropUpTo(base);
    return { view, confEntries: this.#confEntries.filter(({ index }) => index > base.index) };
  }
}

/**
 * Cuts off a torn end and writes the last batch again: the bytes that were read may exist only in the page cache. After a failed sync the
 * kernel marks such pages clean, so another sync alone would write nothing.
 */
async function rewriteLastBatch({ segment, bytes, scan }: ScannedSegment): Promise<void> {
  const { file, end } = segment;
  if (scan.tail === 'torn') await file.truncate(end);
  const batchStart = scan.records.at(-1)?.batchStart ?? end;
  await file.write(batchStart, bytes.subarray(batchStart, end));
  await file.sync();
  segment.size = await file.size();
}

/** Removes segments below the base and incomplete new segments, both left by a crash. */
async function removeLeftovers({ disk, directory, state }: LogLocation): Promise<void> {
  const { numbers, rest } = await listSegments(disk, directory);
  for (const number of numbers) if (number < state.firstSegment) await disk.remove(segmentPath(directory, number));
  for (const name of rest) if (name.endsWith('.log.new')) await disk.remove(join(directory, name));
  await disk.syncDirectory(directory);
}
