import { CodecError, type SnapshotMeta } from '@transitd/raft-core';
import type { StateMeta } from '../state/state-record.ts';
import type { StateSnapshot } from '../state/state-store.ts';
import { DigestSum } from '../store/digest.ts';
import { comparePaths } from '../store/path.ts';
import type { Row } from '../store/range.ts';
import { replicationName } from '../store/replication-state.ts';
import {
  chunkBytes,
  FrameReader,
  FrameWriter,
  frameHeadBytes,
  preambleBytes,
  recordRowBytes,
  type SnapshotFrame,
  writeRecordRow,
} from './snapshot-format.ts';

/**
 * Encodes a state as a stream (`snapshot-format.ts`), chunk by chunk at the reader's pace. The digest is the one that was stored with the
 * records, so a reader can check that the stream holds exactly those records.
 */
export async function* writeSnapshot(
  snapshot: Pick<StateSnapshot, 'meta' | 'pages'>,
  meta: SnapshotMeta,
): AsyncGenerator<Buffer> {
  const writer = new FrameWriter();
  yield writer.begin(meta);
  let records = 0;
  let body = Buffer.allocUnsafe(chunkBytes); // `writer.records` copies the body into the frame
  let end = 0;
  for await (const rows of snapshot.pages()) {
    for (const row of rows) {
      const bytes = recordRowBytes(row);
      if (end > 0 && end + bytes > chunkBytes) {
        yield writer.records(body.subarray(0, end));
        end = 0;
        if (body.length > chunkBytes) body = Buffer.allocUnsafe(chunkBytes);
      }
      if (bytes > body.length) body = Buffer.allocUnsafe(bytes);
      end = writeRecordRow(body, end, row);
    }
    records += rows.length;
  }
  if (end > 0) yield writer.records(body.subarray(0, end));
  const { digest, valuesWritten } = snapshot.meta;
  yield writer.end({ records, valuesWritten, digest });
}

/** A checked part of a stream: the metadata first, then the records, then their totals. */
export type SnapshotPart =
  | { readonly type: 'meta'; readonly meta: SnapshotMeta }
  | { readonly type: 'records'; readonly rows: readonly Row[] }
  | { readonly type: 'end'; readonly records: number; readonly state: StateMeta };

/**
 * Reads a stream as {@link readSnapshot} does and also checks the state digest. For callers that do not load the records into a state:
 * opening a state checks the digest anyway.
 */
export async function* readVerifiedSnapshot(source: AsyncIterable<Uint8Array>): AsyncGenerator<SnapshotPart> {
  const sum = new DigestSum();
  for await (const part of readSnapshot(source)) {
    if (part.type === 'records') for (const row of part.rows) sum.add(row);
    if (part.type === 'end' && part.state.digest !== sum.digest)
      throw new CodecError('the records do not match the digest of the state');
    yield part;
  }
}

/**
 * Reads a stream that {@link writeSnapshot} made, split anywhere. Reading to the end proves that every byte is as it was sent.
 * {@link readVerifiedSnapshot} also checks the digest, which proves that the records are those of the state.
 * @throws CodecError for any other bytes; errors of `source`
 */
export async function* readSnapshot(source: AsyncIterable<Uint8Array>): AsyncGenerator<SnapshotPart> {
  let meta: SnapshotMeta | undefined;
  let last: string | undefined;
  let ended = false;
  let isReplicated = false;
  let records = 0;
  for await (const frame of readFrames(source)) {
    if (ended || (frame.type === 'meta') !== (meta === undefined)) throw new CodecError('a frame is out of order');
    if (frame.type === 'meta') {
      meta = frame.meta;
      yield frame;
    } else if (frame.type === 'records') {
      for (const row of frame.rows) {
        if (last !== undefined && comparePaths(last, row.path) >= 0) throw new CodecError('records do not ascend by name');
        // The revisions of a replicated state are service indexes, which are ahead of this cluster's log. Its record precedes all paths.
        isReplicated ||= row.path === replicationName;
        if (!isReplicated && meta !== undefined && row.revision > meta.index)
          throw new CodecError('a record is newer than its snapshot');
        last = row.path;
      }
      records += frame.rows.length;
      yield frame;
    } else {
      ended = true;
      if (frame.records !== records) throw new CodecError(`received ${records} records of ${frame.records}`);
      const { valuesWritten, digest } = frame;
      yield { type: 'end', records, state: { appliedIndex: meta?.index ?? 0, valuesWritten, digest } };
    }
  }
  if (!ended) throw new CodecError('the snapshot is truncated');
}

async function* readFrames(source: AsyncIterable<Uint8Array>): AsyncGenerator<SnapshotFrame> {
  const reader = new FrameReader();
  const queue = new ByteQueue();
  let begun = false;
  let head: Buffer | undefined;
  for await (const chunk of source) {
    queue.push(chunk);
    for (;;) {
      if (!begun) {
        const preamble = queue.take(preambleBytes);
        if (preamble === undefined) break;
        reader.preamble(preamble);
        begun = true;
      }
      head ??= queue.take(frameHeadBytes);
      const body = head && queue.take(reader.bodyBytes(head));
      if (head === undefined || body === undefined) break;
      yield reader.frame(head, body);
      head = undefined;
    }
  }
  if (head !== undefined || queue.bytes > 0) throw new CodecError('the snapshot is truncated');
}

/** A queue of bytes, added and removed in pieces of any length. */
class ByteQueue {
  #pieces: Uint8Array[] = [];
  bytes = 0;

  push(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.bytes += piece.length;
  }

  /** Removes and returns the next `length` bytes; undefined while there are fewer. */
  take(length: number): Buffer | undefined {
    if (this.bytes < length) return undefined;
    const all = this.#pieces.length === 1 ? asBuffer(this.#pieces[0] as Uint8Array) : Buffer.concat(this.#pieces);
    this.bytes -= length;
    this.#pieces = this.bytes === 0 ? [] : [all.subarray(length)];
    return all.subarray(0, length);
  }
}

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength);
