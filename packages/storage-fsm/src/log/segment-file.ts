import { join } from 'node:path';
import type { Disk, DiskFile } from '../directory/disk.ts';
import { encodeSegmentHeader, type SegmentHeader, segmentHeaderBytes } from './segment.ts';

/** One open segment. */
export interface SegmentFile {
  readonly header: SegmentHeader;
  readonly path: string;
  readonly file: DiskFile;
  /** Bytes in use; the next record is written here. */
  end: number;
  /** Size of the file, which holds zeros from `end` on. */
  size: number;
}

const suffix = '.log';
export const segmentPath = (directory: string, number: number): string =>
  join(directory, `${String(number).padStart(10, '0')}${suffix}`);

/** Lists the numbers of the segments in a directory, ascending; `rest` has the names of all other files. */
export async function listSegments(disk: Disk, directory: string): Promise<{ numbers: number[]; rest: string[] }> {
  const names = (await disk.list(directory)) ?? [];
  const isSegment = (name: string) => /^\d{10}\.log$/.test(name);
  const numbers = names.filter(isSegment).map((name) => Number(name.slice(0, -suffix.length)));
  return { numbers: numbers.sort((a, b) => a - b), rest: names.filter((name) => !isSegment(name)) };
}

/** Creates a segment. It gets its name only when its header is durable, so a bad header always means damage, never an incomplete file. */
export async function createSegment(disk: Disk, directory: string, header: SegmentHeader): Promise<SegmentFile> {
  const path = segmentPath(directory, header.number);
  const file = await disk.create(`${path}.new`);
  await file.write(0, encodeSegmentHeader(header));
  await file.sync();
  await disk.rename({ from: `${path}.new`, to: path });
  await disk.syncDirectory(directory);
  return { header, path, file, end: segmentHeaderBytes, size: segmentHeaderBytes };
}

/**
 * Extends the file with zeros, so that the syncs of the next batches do not have to update its size.
 * @param bytes - free bytes needed after the used part
 * @param stepBytes - the file grows by multiples of this
 */
export async function extendSegment(
  segment: SegmentFile,
  { bytes, stepBytes }: { bytes: number; stepBytes: number },
): Promise<void> {
  if (segment.end + bytes <= segment.size) return;
  const size = Math.ceil((segment.end + bytes) / stepBytes) * stepBytes;
  await segment.file.write(segment.size, Buffer.alloc(size - segment.size));
  segment.size = size;
}
