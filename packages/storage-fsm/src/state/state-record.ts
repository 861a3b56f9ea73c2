import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { LogIndex } from '@transitd/raft-core';
import { digestBytes, emptyDigest } from '../store/digest.ts';
import type { StoredRecord } from '../store/store.ts';

/** What the state on disk says of itself, written in one batch with the records it speaks of; the same on every node. */
export interface StateMeta {
  readonly appliedIndex: LogIndex;
  /** Non-null writes of all transactions applied so far, conflicting ones included. */
  readonly valuesWritten: number;
  /** Sum of all records' digests, modulo 2^256. */
  readonly digest: bigint;
}

/** State before the first entry. */
export const emptyMeta: StateMeta = { appliedIndex: 0, valuesWritten: 0, digest: emptyDigest };

/** Key of the meta record; no record's name begins with it, and all sort behind. */
export const metaKey = '\0';

const formatVersion = 1;
const checkedBytes = 1 + 6 + 6 + digestBytes;

/** `version u8 | applied index u48 | values written u48 | digest (32 bytes) | SHA-256 of all that`, integers big-endian. */
export function encodeMeta({ appliedIndex, valuesWritten, digest }: StateMeta): Buffer {
  const out = Buffer.alloc(checkedBytes);
  out.writeUInt8(formatVersion);
  out.writeUIntBE(appliedIndex, 1, 6);
  out.writeUIntBE(valuesWritten, 7, 6);
  out.write(digest.toString(16).padStart(2 * digestBytes, '0'), 13, 'hex');
  return Buffer.concat([out, sha256(out)]);
}

/** Undefined when the bytes are not what {@link encodeMeta} writes; a `version` when it is another format's. */
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
 * A record's value in `level`: `crc32 u32 | revision u48 | value`; the CRC covers the key too. LevelDB compares no checksums on
 * reading, and a wrong revision would have this node decide a condition otherwise than its peers.
 */
export function encodeRecord(key: string, { value, revision }: StoredRecord): Buffer {
  const out = Buffer.allocUnsafe(headBytes + value.length);
  out.writeUIntBE(revision, crcBytes, headBytes - crcBytes);
  out.set(value, headBytes);
  out.writeUInt32BE(crcOf(key, out));
  return out;
}

/** Undefined when the bytes are not what {@link encodeRecord} wrote for this key. */
export function decodeRecord(key: string, bytes: Buffer): StoredRecord | undefined {
  if (bytes.length < headBytes || bytes.readUInt32BE() !== crcOf(key, bytes)) return undefined;
  return { value: bytes.subarray(headBytes), revision: bytes.readUIntBE(crcBytes, headBytes - crcBytes) };
}

const crcOf = (key: string, record: Buffer): number => crc32(record.subarray(crcBytes), crc32(key));
