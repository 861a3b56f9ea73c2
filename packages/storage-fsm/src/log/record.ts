import { crc32 } from 'node:zlib';
import type { Entry, EntryType } from '@transitd/raft-core';

/** `length u32 | crc u32 | prevCrc u32 | batchStart u32 | term u48 | index u48 | type u8`, big-endian; the data follows. */
export const recordHeaderBytes = 29;

/** One entry as stored in a segment. */
export interface LogRecord extends Entry {
  /** Position of the record's first byte in the segment. */
  readonly offset: number;
  /** Length of header and data. */
  readonly bytes: number;
  readonly crc: number;
  /** Checksum of the previous record, also across segments: a lost or exchanged record breaks the chain. */
  readonly prevCrc: number;
  /** Position of the first record of the batch that was written and synced together. */
  readonly batchStart: number;
}

/** How a record is linked to the log around it. `seed`: see `SegmentHeader`. */
export interface RecordLinks {
  readonly prevCrc: number;
  readonly batchStart: number;
  readonly seed: number;
}

const typeCodes: Readonly<Record<EntryType, number>> = { normal: 1, noop: 2, conf: 3 };
const typesByCode: readonly (EntryType | undefined)[] = [undefined, 'normal', 'noop', 'conf'];

export const recordBytes = (entry: Entry): number => recordHeaderBytes + entry.data.length;

/** Writes one record into `target` and returns its checksum. */
export function writeRecord(target: Buffer, at: number, entry: Entry, { prevCrc, batchStart, seed }: RecordLinks): number {
  const length = recordBytes(entry);
  target.writeUInt32BE(length, at);
  target.writeUInt32BE(prevCrc, at + 8);
  target.writeUInt32BE(batchStart, at + 12);
  target.writeUIntBE(entry.term, at + 16, 6);
  target.writeUIntBE(entry.index, at + 22, 6);
  target.writeUInt8(typeCodes[entry.type], at + 28);
  target.set(entry.data, at + recordHeaderBytes);
  const crc = checksum(target, at, length, seed);
  target.writeUInt32BE(crc, at + 4);
  return crc;
}

/** Reads the record at `at`; its data is a view of `bytes`. Returns undefined if there is no record or its checksum is wrong. */
export function readRecord(bytes: Buffer, at: number, seed: number): LogRecord | undefined {
  if (at + recordHeaderBytes > bytes.length) return undefined;
  const length = bytes.readUInt32BE(at);
  const type = typesByCode[bytes.readUInt8(at + 28)];
  if (length < recordHeaderBytes || at + length > bytes.length || type === undefined) return undefined;
  const crc = bytes.readUInt32BE(at + 4);
  if (checksum(bytes, at, length, seed) !== crc) return undefined;
  return {
    offset: at,
    bytes: length,
    crc,
    prevCrc: bytes.readUInt32BE(at + 8),
    batchStart: bytes.readUInt32BE(at + 12),
    term: bytes.readUIntBE(at + 16, 6),
    index: bytes.readUIntBE(at + 22, 6),
    type,
    data: bytes.subarray(at + recordHeaderBytes, at + length),
  };
}

/**
 * The checksum covers everything but itself. zlib's CRC-32 is built in and runs at about 3 GB/s; the usual CRC-32C would need a native
 * addon, and detects no more. It protects against accidents, not against attackers.
 */
const checksum = (bytes: Buffer, at: number, length: number, seed: number): number =>
  crc32(bytes.subarray(at + 8, at + length), crc32(bytes.subarray(at, at + 4), seed));
