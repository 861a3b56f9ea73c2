import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { decodeFileHeader, encodeFileHeader, fileHeaderBytesMax } from '../src/file-header.ts';
import { DamagedStream, SegmentCipher, type SegmentParameters } from '../src/segment-cipher.ts';

interface Vector {
  readonly hash: SegmentParameters['hash'];
  readonly segment: number;
  readonly derived: 16 | 32;
  readonly key: string;
  readonly plaintext: string;
  readonly aad: string;
  readonly ciphertext: string;
}

const vectors: readonly Vector[] = JSON.parse(
  readFileSync(new URL('vectors/tink-aes-gcm-hkdf-streaming.json', import.meta.url), 'utf8'),
).cases;
const hex = (text: string): Buffer => Buffer.from(text, 'hex');

async function cipherOf({ hash, segment, derived, key, aad, ciphertext }: Vector): Promise<SegmentCipher> {
  const header = hex(ciphertext).subarray(0, 1 + derived + 7);
  return SegmentCipher.create(hex(key), hex(aad), { hash, derivedKeyBytes: derived, segmentBytes: segment }, header);
}

/** Divides bytes into pieces of the sizes that the cipher expects. */
function pieces(bytes: Buffer, sizeOf: (number: number) => number): Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  do {
    found.push(bytes.subarray(at, at + sizeOf(found.length)));
    at += found.at(-1)?.length ?? 0;
  } while (at < bytes.length);
  return found;
}

const segmentsOf = (cipher: SegmentCipher, { ciphertext }: Vector): Buffer[] =>
  pieces(hex(ciphertext).subarray(cipher.header.length), (number) => cipher.ciphertextBytes(number));

async function opened(cipher: SegmentCipher, segments: readonly Buffer[]): Promise<Buffer> {
  const parts = await Promise.all(segments.map((one, at) => cipher.decrypt(at, at === segments.length - 1, one)));
  return Buffer.concat(parts);
}

async function refused(work: Promise<unknown>): Promise<void> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).to.be.instanceOf(DamagedStream);
}

describe('AES-GCM-HKDF streaming', () => {
  for (const [at, vector] of vectors.entries())
    it(`agrees with vector ${at} of Tink in both directions`, async () => {
      const cipher = await cipherOf(vector);
      expect((await opened(cipher, segmentsOf(cipher, vector))).toString('hex')).to.equal(vector.plaintext);
      const plain = pieces(hex(vector.plaintext), (number) => cipher.plaintextBytes(number));
      const made = await Promise.all(plain.map((one, number) => cipher.encrypt(number, number === plain.length - 1, one)));
      expect(Buffer.concat([cipher.header, ...made]).toString('hex')).to.equal(vector.ciphertext);
    });

  it('notices a segment that was changed, left out, moved, repeated, or cut off', async () => {
    const vector = vectors[0] as Vector;
    const cipher = await cipherOf(vector);
    const [one, two, three] = segmentsOf(cipher, vector) as [Buffer, Buffer, Buffer];
    const changed = Buffer.from(two);
    changed[5] = (changed[5] ?? 0) ^ 1;
    await opened(cipher, [one, two, three]);
    for (const segments of [
      [one, changed, three],
      [one, three],
      [two, one, three],
      [one, two, two, three],
      [one, two],
      [one],
      [one, two, three.subarray(0, -1)],
    ])
      await refused(opened(cipher, segments));
  });

  it('notices another header, other associated data and another key', async () => {
    const vector = vectors[0] as Vector;
    const segments = segmentsOf(await cipherOf(vector), vector);
    const flipped = hex(vector.ciphertext);
    flipped[3] = (flipped[3] ?? 0) ^ 1;
    for (const other of [{ aad: '00' }, { key: '00'.repeat(16) }, { ciphertext: flipped.toString('hex') }])
      await refused(cipherOf({ ...vector, ...other }).then((cipher) => opened(cipher, segments)));
    await refused(cipherOf({ ...vector, ciphertext: `19${vector.ciphertext.slice(2)}` }));
  });

  it('gives every stream its own header', async () => {
    const [one, two] = [
      await SegmentCipher.create(Buffer.alloc(32), Buffer.alloc(0)),
      await SegmentCipher.create(Buffer.alloc(32), Buffer.alloc(0)),
    ];
    expect(Buffer.from(one.header)).to.not.deep.equal(Buffer.from(two.header));
    expect(one.header[0]).to.equal(40);
  });
});

describe('the header of an encrypted file', () => {
  const header = { key: 'orders', datakey: 'svc:v1:abc', segmentBytes: 4096, source: 'x' };

  it('is read as it was written', () => {
    const { bytes, associatedData } = encodeFileHeader(header);
    const decoded = decodeFileHeader(Uint8Array.from([...bytes, 0x0a, 0x7b]));
    expect(decoded).to.deep.equal({ header, associatedData, bytes: bytes.length });
    expect(Buffer.from(associatedData).toString()).to.not.include('svc:v1:abc');
    expect(decodeFileHeader(bytes.subarray(0, associatedData.length + 3)), 'the second line has not ended').to.equal(undefined);
    expect(decodeFileHeader(bytes.subarray(0, 10)), 'more bytes are necessary').to.equal(undefined);
  });

  for (const [why, text] of [
    ['a text', 'hello\n'],
    ['a text without a line end', 'hello'],
    ['other JSON', '{"format":"other"}\nb\n'],
    ['a list', '[]\n'],
    ['a segment size of zero', '{"format":"transitd-file-1","key":"a","segment_bytes":0}\nb\n'],
    ['a huge segment size', '{"format":"transitd-file-1","key":"a","segment_bytes":1e12}\nb\n'],
    ['an endless line', `{${' '.repeat(fileHeaderBytesMax)}`],
  ] as const)
    it(`is refused: ${why}`, () => {
      expect(() => decodeFileHeader(Buffer.from(text))).to.throw(DamagedStream, /not a file/);
    });
});
