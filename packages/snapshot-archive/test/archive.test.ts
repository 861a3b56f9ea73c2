import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync, gzipSync } from 'node:zlib';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { pack } from 'tar-stream';
import { archiveOf, readArchive, type SealedParts, sumsOf } from '../src/archive.ts';

const meta = {
  format: 1,
  version: '0.1.0',
  clusterId: '6b7c6f0e-2f0b-4c34-9d6b-0f8c1d2e3a4b',
  index: 42,
  term: 3,
  createdUtc: '2026-06-01T00:00:00.000Z',
  featureLevel: 2,
} as const;
const content = randomBytes(300_000);
const proof = randomBytes(65);
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('a snapshot archive', () => {
  let folder = '';
  let parts: SealedParts;
  let whole = Buffer.alloc(0);
  let files = 0;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-archive-'));
    const path = join(folder, 'made');
    writeFileSync(path, content);
    const state = { bytes: content.length, sha256: sha256(content) };
    parts = { meta, state, sums: sumsOf({ meta, state }), proof };
    whole = await buffer(archiveOf(parts, createReadStream(path)));
  });
  after(() => rmSync(folder, { recursive: true }));

  const read = (archive: Iterable<Uint8Array>, options: Partial<Parameters<typeof readArchive>[1]> = {}) =>
    readArchive(Readable.from(archive), {
      statePath: join(folder, `read-${files++}`),
      bytesMax: 1_000_000,
      watch: () => undefined,
      ...options,
    });
  const failureOf = (attempt: Promise<unknown>): Promise<unknown> =>
    attempt.then(
      () => undefined,
      (error: unknown) => error,
    );
  const tarOf = (entries: readonly (readonly [name: string, bytes: Uint8Array])[]): Promise<Buffer> => {
    const tar = pack();
    for (const [name, bytes] of entries) tar.entry({ name }, Buffer.from(bytes));
    tar.finalize();
    return buffer(tar).then((bytes) => gzipSync(bytes));
  };
  const metaText = Buffer.from(`${JSON.stringify(meta, undefined, 2)}\n`);
  const good = (): [string, Buffer][] => [
    ['meta.json', metaText],
    ['state.bin', content],
    ['SHA256SUMS', parts.sums],
    ['SHA256SUMS.sealed', proof],
  ];

  it('returns what was put into it, however the stream is divided', async () => {
    for (const size of [1000, 65_536, whole.length]) {
      const pieces = Array.from({ length: Math.ceil(whole.length / size) }, (_, i) => whole.subarray(i * size, (i + 1) * size));
      const got = await read(pieces);
      expect(got.meta).to.deep.equal(meta);
      expect(readFileSync(join(folder, `read-${files - 1}`)).equals(content)).to.equal(true);
      expect([got.state.sha256, got.state.bytes]).to.deep.equal([sha256(content), content.length]);
      expect([got.sums, got.proof]).to.deep.equal([parts.sums, proof]);
    }
  });

  it('starts with meta.json, and has its checksums in the format of sha256sum', () => {
    expect(gunzipSync(whole).subarray(0, 9).toString()).to.equal('meta.json');
    expect(parts.sums.toString()).to.equal(`${sha256(metaText)}  meta.json\n${sha256(content)}  state.bin\n`);
  });

  const without = (name: string) => () => tarOf(good().filter(([one]) => one !== name));
  const withPart = (name: string, bytes: Buffer) => () =>
    tarOf(good().map(([one, present]) => [one, one === name ? bytes : present] as const));
  for (const [what, make] of Object.entries<() => Promise<Uint8Array> | Uint8Array>({
    nothing: () => Buffer.alloc(0),
    text: () => Buffer.from('garbage'),
    'a gzip of something else': () => gzipSync(randomBytes(5000)),
    'an empty tar': () => tarOf([]),
    'a truncated archive': () => whole.subarray(0, whole.length - 1000),
    'an archive with a changed byte': () => Buffer.from(whole.map((byte, i) => (i === whole.length >> 1 ? byte ^ 1 : byte))),
    'an archive without meta.json': without('meta.json'),
    'an archive without the state': without('state.bin'),
    'an archive without checksums': without('SHA256SUMS'),
    'an archive without the proof': without('SHA256SUMS.sealed'),
    'an archive with another state': withPart('state.bin', Buffer.from('other')),
    'an archive with another meta.json': withPart('meta.json', Buffer.from('{}')),
    'an archive with a file twice': () => tarOf([...good(), ['state.bin', content]]),
    'an archive with an unknown file': () => tarOf([...good(), ['../../etc/passwd', Buffer.from('x')]]),
    'an archive with a huge checksum file': withPart('SHA256SUMS', Buffer.alloc(70_000)),
    'an archive of a newer format': () => {
      const newer = Buffer.from(JSON.stringify({ ...meta, format: 2 }));
      const sums = Buffer.from(`${sha256(newer)}  meta.json\n${sha256(content)}  state.bin\n`);
      return tarOf([
        ['meta.json', newer],
        ['state.bin', content],
        ['SHA256SUMS', sums],
        ['SHA256SUMS.sealed', proof],
      ]);
    },
  }))
    it(`refuses ${what} as the caller's mistake`, async () => {
      expect(await failureOf(read([await make()]))).to.have.property('code', 'not_restorable');
    });

  it('refuses a state above the size limit, however small the compressed archive is', async () => {
    const zeros = Buffer.alloc(5_000_000);
    const packed = await tarOf([['state.bin', zeros]]);
    expect(packed.length).to.be.below(100_000);
    expect(await failureOf(read([packed]))).to.have.property('code', 'too_large');
  });

  it('fails with the unchanged error of its source or of the disk', async () => {
    async function* breaking(): AsyncGenerator<Uint8Array> {
      yield whole.subarray(0, 1000);
      throw new StoreError('stopped', 'the source broke');
    }
    const broken = readArchive(breaking(), { statePath: join(folder, 'broken'), bytesMax: 1e6, watch: () => undefined });
    expect(await failureOf(broken)).to.have.property('code', 'stopped');
    const low = read([whole], {
      watch: () => {
        throw new StoreError('disk_low', 'low');
      },
    });
    expect(await failureOf(low)).to.have.property('code', 'disk_low');
    expect(await failureOf(read([whole], { statePath: join(folder, 'nowhere/file') }))).to.have.property('code', 'ENOENT');
  });
});
