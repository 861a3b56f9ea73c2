import { crc32 } from 'node:zlib';
import type { NodeId } from '@transitd/raft-core';
import { type LogRecord, readRecord, recordHeaderBytes } from './record.ts';

/**
 * The first bytes of a segment: `magic | format u32 | crc u32 | number u32 | nodeId u48 | chainStart u32`, then zeros.
 * `chainStart` is the checksum of the last record before this segment; it is random for a log's first segment. It also seeds the
 * checksums of this segment's records, so that bytes inside an entry's data, or left over from an earlier file, never pass for a record.
 */
export interface SegmentHeader {
  readonly number: number;
  readonly nodeId: NodeId;
  readonly chainStart: number;
}

export const segmentHeaderBytes = 64;
const magic = Buffer.from('TDLOGSEG', 'latin1');
const format = 1;

export function encodeSegmentHeader({ number, nodeId, chainStart }: SegmentHeader): Buffer {
  const bytes = Buffer.alloc(segmentHeaderBytes);
  magic.copy(bytes);
  bytes.writeUInt32BE(format, 8);
  bytes.writeUInt32BE(number, 16);
  bytes.writeUIntBE(nodeId, 20, 6);
  bytes.writeUInt32BE(chainStart, 26);
  bytes.writeUInt32BE(headerChecksum(bytes), 12);
  return bytes;
}

/** Returns `newer` for an intact header of an unknown format, undefined for anything else that is not a header. */
export function decodeSegmentHeader(bytes: Buffer): SegmentHeader | 'newer' | undefined {
  const whole = bytes.length >= segmentHeaderBytes && bytes.readUInt32BE(12) === headerChecksum(bytes);
  if (!whole || !bytes.subarray(0, 8).equals(magic)) return undefined;
  if (bytes.readUInt32BE(8) !== format) return 'newer';
  return { number: bytes.readUInt32BE(16), nodeId: bytes.readUIntBE(20, 6), chainStart: bytes.readUInt32BE(26) };
}

const headerChecksum = (bytes: Buffer): number => crc32(bytes.subarray(16, segmentHeaderBytes), crc32(bytes.subarray(0, 12)));

/** The intact records from the beginning of a segment, and the state of the bytes after them. */
export interface SegmentScan {
  readonly records: readonly LogRecord[];
  /** Position after the last intact record. */
  readonly end: number;
  /** Checksum of the last intact record; the next record, in this segment or the next, refers to it. */
  readonly chainEnd: number;
  /**
   * `clean`: zeros, never written. `torn`: any subset of the pages of a batch that was being written when the node stopped.
   * `damaged`: only a change of synced bytes can explain the content.
   */
  readonly tail: 'clean' | 'torn' | 'damaged';
}

/** Reads a whole segment. One batch is in flight at a time, so only the last batch can be torn. */
export function scanSegment(bytes: Buffer, { chainStart: seed }: SegmentHeader): SegmentScan {
  const records: LogRecord[] = [];
  let end = segmentHeaderBytes;
  let chainEnd = seed;
  let record = readRecord(bytes, end, seed);
  for (; record !== undefined; record = readRecord(bytes, end, seed)) {
    if (record.prevCrc !== chainEnd) return { records, end, chainEnd, tail: 'damaged' };
    records.push(record);
    chainEnd = record.crc;
    end += record.bytes;
  }
  return { records, end, chainEnd, tail: tailFrom(bytes, end, seed) };
}

/** An intact record of a batch that began after `bad` was written only after the bytes at `bad` had been synced. */
function tailFrom(bytes: Buffer, bad: number, seed: number): SegmentScan['tail'] {
  if (isZero(bytes.subarray(bad))) return 'clean';
  for (let at = bad + 1; at + recordHeaderBytes <= bytes.length; at++) {
    const batchStart = bytes.readUInt32BE(at + 12);
    if (batchStart > bad && batchStart <= at && readRecord(bytes, at, seed) !== undefined) return 'damaged';
  }
  return 'torn';
}

const isZero = (bytes: Buffer): boolean =>
  bytes.length === 0 || (bytes[0] === 0 && bytes.subarray(1).equals(bytes.subarray(0, -1)));
