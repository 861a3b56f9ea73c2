import { crc32 } from 'node:zlib';
import type { NodeId } from '@transitd/raft-core';
import { type LogRecord, readRecord, recordHeaderBytes } from './record.ts';

/**
 * The first bytes of a segment: `magic | format u32 | crc u32 | number u32 | nodeId u48 | chainStart u32`, then zeros.
 * `chainStart` is the checksum of the last record before this segment, drawn at random for a node's first one. It also seeds
 * the checksums of this segment's records, so that bytes inside an entry's data, or left from an earlier file, are no record.
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

/** `newer`: a whole header of a format that this version does not know. Undefined: no header. */
export function decodeSegmentHeader(bytes: Buffer): SegmentHeader | 'newer' | undefined {
  const whole = bytes.length >= segmentHeaderBytes && bytes.readUInt32BE(12) === headerChecksum(bytes);
  if (!whole || !bytes.subarray(0, 8).equals(magic)) return undefined;
  if (bytes.readUInt32BE(8) !== format) return 'newer';
  return { number: bytes.readUInt32BE(16), nodeId: bytes.readUIntBE(20, 6), chainStart: bytes.readUInt32BE(26) };
}

const headerChecksum = (bytes: Buffer): number => crc32(bytes.subarray(16, segmentHeaderBytes), crc32(bytes.subarray(0, 12)));

/** The good records of a segment from its beginning on, and what follows them. */
export interface SegmentScan {
  readonly records: readonly LogRecord[];
  /** Place behind the last good record. */
  readonly end: number;
  /** Checksum that the next record, in this segment or the next, refers to. */
  readonly chainEnd: number;
  /**
   * `clean`: zeros, never written. `torn`: what a batch can leave that was being written when the node stopped, any subset of
   * its pages. `damaged`: something that only a change of synced bytes explains.
   */
  readonly tail: 'clean' | 'torn' | 'damaged';
}

/** Reads a whole segment. One batch is in flight at a time, so whatever is torn belongs to the last batch. */
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

/** A good record of a batch that began behind `bad` was written only after `bad` had been synced. */
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
