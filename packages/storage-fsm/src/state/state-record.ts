import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { LogIndex } from '@transitd/raft-core';
import { digestBytes, emptyDigest } from '../store/digest.ts';
import type { StoredRecord } from '../store/store.ts';

/** Metadata of the state, stored in one batch with the records that it describes; the same on every node. */
export interface StateMeta {
  readonly appliedIndex: LogIndex;
  /** Number of non-null writes in all transactions applied so far, including conflicting ones. */
  readonly valuesWritten: number;
  /** Sum of all records' digests, modulo 2^256. */
  readonly digest: bigint;
}

/** Metadata of the state before the first entry. */
export const emptyMeta: StateMeta = { appliedIndex: 0, valuesWritten: 0, digest: emptyDigest };

/** Key of the meta record; no record's name begins with it, and all names sort after it. */
export const metaKey = '\0';

const formatVersion = 1;
const checkedBytes = 1 + 6 + 6 + digestBytes;

/** Encodes `version u8 | applied index u48 | values written u48 | digest (32 bytes) | SHA-256 of the preceding`, integers big-endian. */
export function encodeMeta({ appliedIndex, valuesWritten, digest }: StateMeta): Buffer {
  const out = Buffer.alloc(checkedBytes);
  out.writeUInt8(formatVersion);
  out.writeUIntBE(appliedIndex, 1, 6);
  out.writeUIntBE(valuesWritten, 7, 6);
  out.write(digest.toString(16).padStart(2 * digestBytes, '0'), 13, 'hex');
  return Buffer.concat([out, sha256(out)]);
}

/** Decodes the meta record. Returns undefined for damaged bytes, and only the `version` for another format. */
export function decodeMeta(bytes: Buffer): StateMeta | { readonly version: number } | undefined {
  const checked = bytes.subarray(0, -digestBytes);
  if (checked.length === 0 || !sha256(checked).equals(bytes.subarray(-digestBytes))) return undefined;
  const version = checked.readUInt8();
  if (version !== formatVersion) return { version };
  if (checked.length !== checkedBytes) return undefined;
  return {
    appliedIndex: checked.readUIntBE(1, 6),
    valuesWritten: checked.readUIntBE(7, 6),
    digest: BigInt(`0x${checked.toString('hex', 13)}`),
  };
}

const sha256 = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest();

const crcBytes = 4;
const headBytes = crcBytes + 6;

/**
 * Encodes a record's value in `level`: `crc32 u32 | revision u48 | value`; the CRC covers the key too. LevelDB does not verify checksums
 * on reads, and a wrong revision could make this node decide a condition differently than its peers.
 */
export function encodeRecord(key: string, { value, revision }: StoredRecord): Buffer {
  const out = Buffer.allocUnsafe(headBytes + value.length);
  out.writeUIntBE(revision, crcBytes, headBytes - crcBytes);
  out.set(value, headBytes);
  out.writeUInt32BE(crcOf(key, out));
  return out;
}

/** Decodes a record's value. Returns undefined for bytes that {@link encodeRecord} did not write for this key. */
export function decodeRecord(key: string, bytes: Buffer): StoredRecord | undefined {
  if (bytes.length < headBytes || bytes.readUInt32BE() !== crcOf(key, bytes)) return undefined;
  return { value: bytes.subarray(headBytes), revision: bytes.readUIntBE(crcBytes, headBytes - crcBytes) };
}

const crcOf = (key: string, record: Buffer): number => crc32(record.subarray(crcBytes), crc32(key));
