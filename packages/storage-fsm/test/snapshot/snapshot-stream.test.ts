import { CodecError } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { chunkBytes, FrameWriter, frameBytesMax, recordRowBytes, writeRecordRow } from '../../src/snapshot/snapshot-format.ts';
import { readVerifiedSnapshot, type SnapshotPart, writeSnapshot } from '../../src/snapshot/snapshot-stream.ts';
import { addToDigest, emptyDigest, recordDigest } from '../../src/store/digest.ts';
import { comparePaths } from '../../src/store/path.ts';
import type { Row } from '../../src/store/range.ts';
import { base } from '../log/log-calls.ts';
import { somePath } from '../store/arbitraries.ts';
import { rejection } from '../store/store.suite.ts';

const row = (path: string, value: string | Uint8Array = `value of ${path}`, revision = 5): Row => ({
  path,
  value: Buffer.from(value as string),
  revision,
});
const encodedRow = (of: Row): Buffer => {
  const body = Buffer.alloc(recordRowBytes(of));
  expect(writeRecordRow(body, 0, of)).to.equal(body.length);
  return body;
};
const sum = (rows: readonly Row[]): bigint => rows.map(recordDigest).reduce(addToDigest, emptyDigest);
const meta = base(9, 3);

async function written(rows: readonly Row[], digest = sum(rows)): Promise<Buffer[]> {
  const snapshot = {
    meta: { appliedIndex: meta.index, valuesWritten: 17, digest },
    pages: async function* () {
      yield rows.slice(0, 3);
      yield rows.slice(3);
    },
    close: async () => undefined,
  };
  const chunks: Buffer[] = [];
  for await (const chunk of writeSnapshot(snapshot, meta)) chunks.push(chunk);
  return chunks;
}

async function* inPieces(bytes: Buffer, sizes: readonly number[] = [bytes.length]): AsyncGenerator<Buffer> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function parts(source: AsyncIterable<Uint8Array>): Promise<SnapshotPart[]> {
  const all: SnapshotPart[] = [];
  for await (const part of readVerifiedSnapshot(source)) all.push(part);
  return all;
}

const rowsOf = (all: readonly SnapshotPart[]): string[] =>
  all
    .flatMap((part) => (part.type === 'records' ? part.rows : []))
    .map(({ path, value, revision }) => `${path}=${Buffer.from(value).toString('hex')}@${revision}`);

const asText = (rows: readonly Row[]) =>
  rows.map(({ path, value, revision }) => `${path}=${Buffer.from(value).toString('hex')}@${revision}`);

describe('a snapshot as a stream', () => {
  it('yields the written records, however the bytes are split', () =>
    fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(
          fc.record({ path: somePath, value: fc.uint8Array({ maxLength: 40 }), revision: fc.integer({ min: 1, max: 9 }) }),
          {
            selector: ({ path }) => path,
            maxLength: 20,
          },
        ),
        fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 1, maxLength: 5 }),
        async (unordered, sizes) => {
          const rows = [...unordered].sort((a, b) => comparePaths(a.path, b.path));
          const all = await parts(inPieces(Buffer.concat(await written(rows)), sizes));
          expect(all[0]).to.deep.equal({ type: 'meta', meta });
          expect(rowsOf(all)).to.deep.equal(asText(rows));
          const state = { appliedIndex: 9, valuesWritten: 17, digest: sum(rows) };
          expect(all.at(-1)).to.deep.equal({ type: 'end', records: rows.length, state });
        },
      ),
    ));

  it('is written in chunks of about 256 KiB; a larger record gets a chunk of its own', async () => {
    const rows = [
      row('a', Buffer.alloc(8 * 1024 * 1024)),
      ...Array.from({ length: 40 }, (_, i) => row(`b${String(i).padStart(2, '0')}`, Buffer.alloc(20_000))),
    ];
    const chunks = await written(rows);
    expect(chunks.slice(2).every(({ length }) => length <= chunkBytes + 9)).to.equal(true);
    expect(chunks).to.have.length.below(8);
    expect(rowsOf(await parts(inPieces(Buffer.concat(chunks), [65_536])))).to.have.length(41);
  });

  it('is refused when any byte is changed or it is truncated anywhere', async () => {
    const whole = Buffer.concat(await written([row('a'), row('b/c')]));
    for (let at = 0; at < whole.length; at++) {
      const changed = Buffer.from(whole);
      changed.writeUInt8(changed.readUInt8(at) ^ 0x10, at);
      expect(await rejection(parts(inPieces(changed))), `changed at ${at}`).to.be.instanceOf(CodecError);
      expect(await rejection(parts(inPieces(whole.subarray(0, at)))), `cut at ${at}`).to.be.instanceOf(CodecError);
    }
    expect(await rejection(parts(inPieces(Buffer.concat([whole, Buffer.of(0)]))))).to.be.instanceOf(CodecError);
  });

  it('is refused when an intact chunk is lost, duplicated or exchanged', async () => {
    const rows = ['a', 'b', 'c'].map((path) => row(path, Buffer.alloc(chunkBytes - 100, path)));
    const [begin, a, b, c, end] = (await written(rows)) as [Buffer, Buffer, Buffer, Buffer, Buffer];
    expect(await parts(inPieces(Buffer.concat([begin, a, b, c, end])))).to.have.length(5);
    for (const [name, chunks] of Object.entries({
      lost: [begin, a, c, end],
      doubled: [begin, a, b, b, c, end],
      exchanged: [begin, b, a, c, end],
      'end twice': [begin, a, b, c, end, end],
    }))
      expect(await rejection(parts(inPieces(Buffer.concat(chunks)))), name).to.be.instanceOf(CodecError);
  });

  // Each stream is well-formed except for the rule that it breaks.
  const forged = (make: (writer: FrameWriter) => Buffer[]): Buffer => Buffer.concat(make(new FrameWriter()));
  const rows = [row('a'), row('b')];
  const body = Buffer.concat(rows.map(encodedRow));
  const good = { records: 2, valuesWritten: 17, digest: sum(rows) };
  for (const { name, bytes, because } of [
    {
      name: 'a wrong digest',
      bytes: forged((w) => [w.begin(meta), w.records(body), w.end({ ...good, digest: 1n })]),
      because: /digest/,
    },
    {
      name: 'a wrong count',
      bytes: forged((w) => [w.begin(meta), w.records(body), w.end({ ...good, records: 3 })]),
      because: /2 records of 3/,
    },
    {
      name: 'records out of order',
      bytes: forged((w) => [w.begin(meta), w.records(Buffer.concat([...rows].reverse().map(encodedRow))), w.end(good)]),
      because: /ascend/,
    },
    {
      name: 'a record twice',
      bytes: forged((w) => [w.begin(meta), w.records(body), w.records(encodedRow(row('b')))]),
      because: /ascend/,
    },
    {
      name: 'a record newer than it',
      bytes: forged((w) => [w.begin(meta), w.records(encodedRow(row('a', '', 10)))]),
      because: /newer/,
    },
    {
      name: 'an invalid path',
      bytes: forged((w) => [w.begin(meta), w.records(encodedRow(row('a//b')))]),
      because: /invalid name/,
    },
    {
      name: 'records before the metadata',
      bytes: forged((w) => [new FrameWriter().begin(meta).subarray(0, 12), w.records(body)]),
      because: /out of order/,
    },
    {
      name: 'a second metadata frame',
      bytes: forged((w) => [w.begin(meta), w.begin(meta).subarray(12)]),
      because: /out of order/,
    },
    { name: 'a truncated record', bytes: forged((w) => [w.begin(meta), w.records(body.subarray(0, -1))]), because: /truncated/ },
  ])
    it(`is refused for ${name}`, async () => {
      expect(await rejection(parts(inPieces(bytes))))
        .to.be.instanceOf(CodecError)
        .with.property('message')
        .that.matches(because);
    });

  it('may have later service indexes than the log if the state is replicated', async () => {
    const replicated = [row('\u0001replication'), row('a', '', 10)];
    const end = { records: 2, valuesWritten: 17, digest: sum(replicated) };
    const bytes = forged((w) => [w.begin(meta), w.records(Buffer.concat(replicated.map(encodedRow))), w.end(end)]);
    expect((await parts(inPieces(bytes))).at(-1)).to.deep.include({ type: 'end', records: 2 });
  });

  it('is refused for a frame above the maximum length, before any of its body is read', async () => {
    const frame = forged((w) => [w.begin(meta), w.records(body)]);
    frame.writeUInt32BE(frameBytesMax + 1, frame.length - body.length - 8);
    expect(await rejection(parts(inPieces(frame))))
      .to.have.property('message')
      .that.matches(/longer than the maximum/);
  });

  it('is refused in a newer format', async () => {
    const whole = Buffer.concat(await written([]));
    whole.writeUInt32BE(2, 8);
    expect(await rejection(parts(inPieces(whole)))).to.have.property('message', 'unknown snapshot format 2');
  });

  it('is refused for a state that has lost a record, so that the damage does not spread', async () => {
    const stream = await written([row('a')], sum([row('a'), row('b')]));
    expect(await rejection(parts(inPieces(Buffer.concat(stream)))))
      .to.have.property('message')
      .that.matches(/digest/);
  });
});
