import type { Entry, LogIndex } from '@transitd/raft-core';
import type { Disk } from '../directory/disk.ts';
import { damaged } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { LogView, StoredEntry } from './log-view.ts';
import { RecentRecords } from './recent-records.ts';
import { readRecord, recordBytes, writeRecord } from './record.ts';
import { segmentHeaderBytes } from './segment.ts';
import { createSegment, extendSegment, type SegmentFile } from './segment-file.ts';

/** Sizes in bytes. */
export interface SegmentSizes {
  /** When a segment would grow beyond this, the next one is begun. A larger batch gets a segment of its own. */
  readonly segmentBytes: number;
  /** Files are extended by this much ahead of the writes. */
  readonly growBytes: number;
  /** Cache for the newest records. */
  readonly cacheBytes: number;
}

/** All current segments; the next batch goes to the newest. */
export class Segments {
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #sizes: SegmentSizes;
  readonly #byNumber: Map<number, SegmentFile>;
  readonly #recent: RecentRecords;
  #active: SegmentFile;
  /** Checksum of the newest record. */
  #chainEnd: number;

  constructor(
    location: { disk: Disk; directory: string },
    sizes: SegmentSizes,
    found: { segments: readonly SegmentFile[]; chainEnd: number },
  ) {
    this.#disk = location.disk;
    this.#directory = location.directory;
    this.#sizes = sizes;
    this.#recent = new RecentRecords(sizes.cacheBytes);
    this.#byNumber = new Map(found.segments.map((segment) => [segment.header.number, segment]));
    this.#active = this.#segment(Math.max(...this.#byNumber.keys()));
    this.#chainEnd = found.chainEnd;
  }

  /** Stores one batch with one write and one sync. The caller appends one batch at a time. */
  async append(entries: readonly Entry[]): Promise<StoredEntry[]> {
    const bytes = entries.reduce((sum, entry) => sum + recordBytes(entry), 0);
    const { end } = this.#active;
    if (end > segmentHeaderBytes && end + bytes > this.#sizes.segmentBytes) await this.#roll();
    const segment = this.#active;
    await extendSegment(segment, { bytes, stepBytes: this.#sizes.growBytes });
    const { batch, stored, chainEnd } = this.#encode(entries, bytes);
    failpoint('log.before_append');
    await segment.file.write(segment.end, batch);
    failpoint('log.after_append');
    failpoint('log.before_fsync');
    await segment.file.sync();
    failpoint('log.after_fsync');
    segment.end += bytes;
    this.#chainEnd = chainEnd;
    return stored;
  }

  /** Reads entries, which ascend by index, and checks each. @throws StorageDamaged */
  async read(wanted: readonly StoredEntry[]): Promise<Entry[]> {
    const recent = wanted.flatMap((stored) => {
      const bytes = this.#recent.at(stored);
      return bytes === undefined ? [] : [this.#entry(stored, bytes)];
    });
    const older: Entry[] = [];
    for (const run of adjacent(wanted.slice(0, wanted.length - recent.length))) older.push(...(await this.#readRun(run)));
    return [...older, ...recent];
  }

  /** Returns the first segment that a log beginning at `index` needs: current entries are stored in the order of their indexes. */
  firstNeeded(view: LogView, index: LogIndex): number {
    return view.at(index)?.segment ?? this.#active.header.number;
  }

  async dropBefore(number: number): Promise<void> {
    for (const segment of [...this.#byNumber.values()].filter(({ header }) => header.number < number)) {
      this.#byNumber.delete(segment.header.number);
      await segment.file.close();
      await this.#disk.remove(segment.path);
    }
  }

  async close(): Promise<void> {
    for (const { file } of this.#byNumber.values()) await file.close();
  }

  async #roll(): Promise<void> {
    const { number, nodeId } = this.#active.header;
    this.#active = await createSegment(this.#disk, this.#directory, { number: number + 1, nodeId, chainStart: this.#chainEnd });
    this.#byNumber.set(number + 1, this.#active);
  }

  #encode(entries: readonly Entry[], bytes: number): { batch: Buffer; stored: StoredEntry[]; chainEnd: number } {
    const { header, end: batchStart } = this.#active;
    const batch = this.#recent.allocate({ segment: header.number, offset: batchStart, bytes });
    let prevCrc = this.#chainEnd;
    let at = 0;
    const stored = entries.map((entry) => {
      prevCrc = writeRecord(batch, at, entry, { prevCrc, batchStart, seed: header.chainStart });
      const length = recordBytes(entry);
      at += length;
      return {
        term: entry.term,
        index: entry.index,
        segment: header.number,
        offset: batchStart + at - length,
        bytes: length,
      };
    });
    return { batch, stored, chainEnd: prevCrc };
  }

  async #readRun(run: readonly StoredEntry[]): Promise<Entry[]> {
    const [first] = run;
    if (first === undefined) return [];
    const length = run.reduce((sum, { bytes }) => sum + bytes, 0);
    const bytes = await this.#segment(first.segment).file.read({ position: first.offset, bytes: length });
    return run.map((stored) => this.#entry(stored, bytes.subarray(stored.offset - first.offset)));
  }

  #entry({ segment, offset, index, term }: StoredEntry, bytes: Buffer): Entry {
    const { path, header } = this.#segment(segment);
    const record = readRecord(bytes, 0, header.chainStart);
    if (record?.index !== index || record.term !== term)
      throw damaged(path, `has an unreadable entry ${index} at byte ${offset}`);
    return { term, index, type: record.type, data: record.data };
  }

  #segment(number: number): SegmentFile {
    const segment = this.#byNumber.get(number);
    if (segment === undefined) throw new RangeError(`segment ${number} is not in the log`);
    return segment;
  }
}

/** Splits the entries into runs of adjacent records. */
function adjacent(wanted: readonly StoredEntry[]): StoredEntry[][] {
  const runs: StoredEntry[][] = [];
  let before: StoredEntry | undefined;
  for (const stored of wanted) {
    const follows = before?.segment === stored.segment && before.offset + before.bytes === stored.offset;
    if (follows) runs.at(-1)?.push(stored);
    else runs.push([stored]);
    before = stored;
  }
  return runs;
}
