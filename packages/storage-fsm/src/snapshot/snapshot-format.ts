import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { CodecError, decodeSnapshotMeta, encodeSnapshotMeta, type SnapshotMeta } from '@transitd/raft-core';
import { transactionBytesMax } from '../store/codec.ts';
import { digestBytes } from '../store/digest.ts';
import { pathBytesMax } from '../store/path.ts';
import type { Row } from '../store/range.ts';
import { isName } from '../store/spaces.ts';

/*
 * The stream format of a snapshot: `magic (8 bytes) | format u32`, then frames. A frame is `type u8 | length u32 | crc u32 | body`,
 * integers big-endian. The crc covers type, length and body and continues the crc of the previous frame, so that no frame can be lost,
 * duplicated or exchanged. One `meta` frame (raft-core's encoding) comes first, then `records` frames, then one `end` frame:
 * `records u48 | values written u48 | state digest (32) | SHA-256 (32) of all bytes of the stream before this frame`.
 * A record is `path length u16 | path | revision u48 | value length u32 | value`, where the path is the record's name (`spaces.ts`).
 * Records ascend by the UTF-8 bytes of their names.
 */

export const snapshotMagic = Buffer.from('TDSNAPST', 'latin1');
const formatVersion = 1;
export const preambleBytes = snapshotMagic.length + 4;
export const frameHeadBytes = 9;

/** Approximate size of a `records` frame; a larger record gets a frame of its own. */
export const chunkBytes = 256 * 1024;
/** Maximum length of a frame's body: one record as large as a transaction may make it. */
export const frameBytesMax = transactionBytesMax + pathBytesMax + chunkBytes;

const frameTypes = { meta: 1, records: 2, end: 3 } as const;
export type FrameType = keyof typeof frameTypes;
const recordHeadBytes = 2 + 6 + 4;
const endBytes = 6 + 6 + 2 * digestBytes;

export interface SnapshotEnd {
  readonly records: number;
  readonly valuesWritten: number;
  readonly digest: bigint;
}

/** Encodes the frames of one stream in order; each frame continues the checksums of the previous ones. */
export class FrameWriter {
  readonly #hash = createHash('sha256');
  #crc = 0;

  /** Returns the beginning of the stream. */
  begin(meta: SnapshotMeta): Buffer {
    const preamble = Buffer.alloc(preambleBytes);
    snapshotMagic.copy(preamble);
    preamble.writeUInt32BE(formatVersion, snapshotMagic.length);
    this.#hash.update(preamble);
    return Buffer.concat([preamble, this.#frame('meta', Buffer.from(encodeSnapshotMeta(meta)))]);
  }

  records(body: Buffer): Buffer {
    return this.#frame('records', body);
  }

  end({ records, valuesWritten, digest }: SnapshotEnd): Buffer {
    const body = Buffer.alloc(endBytes);
    body.writeUIntBE(records, 0, 6);
    body.writeUIntBE(valuesWritten, 6, 6);
    body.write(digest.toString(16).padStart(2 * digestBytes, '0'), 12, 'hex');
    this.#hash.digest().copy(body, 12 + digestBytes);
    const head = this.#head('end', body);
    return Buffer.concat([head, body]);
  }

  #frame(type: FrameType, body: Buffer): Buffer {
    const frame = Buffer.concat([this.#head(type, body), body]);
    this.#hash.update(frame);
    return frame;
  }

  #head(type: FrameType, body: Buffer): Buffer {
    const head = Buffer.alloc(frameHeadBytes);
    head.writeUInt8(frameTypes[type]);
    head.writeUInt32BE(body.length, 1);
    this.#crc = crc32(body, crc32(head.subarray(0, 5), this.#crc));
    head.writeUInt32BE(this.#crc, 5);
    return head;
  }
}

/** Decodes the frames of a {@link FrameWriter} in order. Every method throws CodecError for any other bytes. */
export class FrameReader {
  readonly #hash = createHash('sha256');
  #crc = 0;

  preamble(bytes: Buffer): void {
    if (!bytes.subarray(0, snapshotMagic.length).equals(snapshotMagic)) throw new CodecError('this is not a snapshot');
    const version = bytes.readUInt32BE(snapshotMagic.length);
    if (version !== formatVersion) throw new CodecError(`unknown snapshot format ${version}`);
    this.#hash.update(bytes);
  }

  /** Returns the length of the body that follows a head. It is bounded, so that a reader never waits for more than a writer can send. */
  bodyBytes(head: Buffer): number {
    const length = head.readUInt32BE(1);
    if (length > frameBytesMax) throw new CodecError(`a frame of ${length} bytes is longer than the maximum of ${frameBytesMax}`);
    return length;
  }

  frame(head: Buffer, body: Buffer): SnapshotFrame {
    this.#crc = crc32(body, crc32(head.subarray(0, 5), this.#crc));
    if (this.#crc !== head.readUInt32BE(5)) throw new CodecError('a frame has a wrong checksum');
    const type = head.readUInt8();
    if (type === frameTypes.end) return { type: 'end', ...this.#end(body) };
    this.#hash.update(head).update(body);
    if (type === frameTypes.meta) return { type: 'meta', meta: decodeSnapshotMeta(body) };
    if (type === frameTypes.records) return { type: 'records', rows: decodeRecords(body) };
    throw new CodecError(`unknown frame type ${type}`);
  }

  #end(body: Buffer): SnapshotEnd {
    if (body.length !== endBytes) throw new CodecError('the end frame has a wrong length');
    if (!this.#hash.digest().equals(body.subarray(12 + digestBytes)))
      throw new CodecError('the hash of the stream does not match');
    return {
      records: body.readUIntBE(0, 6),
      valuesWritten: body.readUIntBE(6, 6),
      digest: BigInt(`0x${body.toString('hex', 12, 12 + digestBytes)}`),
    };
  }
}

export type SnapshotFrame =
  | { readonly type: 'meta'; readonly meta: SnapshotMeta }
  | { readonly type: 'records'; readonly rows: readonly Row[] }
  | ({ readonly type: 'end' } & SnapshotEnd);

/** Returns the length of an encoded record. */
export const recordRowBytes = ({ path, value }: Row): number => recordHeadBytes + Buffer.byteLength(path) + value.length;

/** Writes a record at `at` into a frame's body, which has room for it. @returns the position of the next record */
export function writeRecordRow(body: Buffer, at: number, { path, value, revision }: Row): number {
  const pathLength = body.write(path, at + 2);
  body.writeUInt16BE(pathLength, at);
  let valueAt = body.writeUIntBE(revision, at + 2 + pathLength, 6);
  valueAt = body.writeUInt32BE(value.length, valueAt);
  body.set(value, valueAt);
  return valueAt + value.length;
}

/** Values are views of `body`. @throws CodecError */
function decodeRecords(body: Buffer): Row[] {
  const rows: Row[] = [];
  try {
    for (let at = 0; at < body.length; ) {
      const valueAt = at + recordHeadBytes + body.readUInt16BE(at);
      const path = decodeName(body.subarray(at + 2, valueAt - 10));
      const revision = body.readUIntBE(valueAt - 10, 6);
      const end = valueAt + body.readUInt32BE(valueAt - 4);
      if (path === undefined) throw new CodecError('a record has an invalid name');
      if (end > body.length) throw new CodecError('a record is truncated');
      rows.push({ path, revision, value: body.subarray(valueAt, end) });
      at = end;
    }
  } catch (error) {
    if (error instanceof RangeError) throw new CodecError('a record is truncated', { cause: error });
    throw error;
  }
  return rows;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns undefined when the bytes are not a valid name. */
function decodeName(bytes: Buffer): string | undefined {
  try {
    const name = utf8.decode(bytes);
    return isName(name) ? name : undefined;
  } catch {
    return undefined;
  }
}
