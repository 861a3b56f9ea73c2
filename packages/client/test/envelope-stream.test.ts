import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { ByteStream } from '../src/envelope-stream.ts';
import { DamagedStream } from '../src/segment-cipher.ts';
import { Service } from './service.ts';

const mebibyte = 2 ** 20;

/** Sends bytes through a stream in chunks, and returns the result. */
async function through(stream: ByteStream, bytes: Uint8Array, chunkBytes = 100_000): Promise<Buffer> {
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkBytes) }, (_, at) =>
    bytes.subarray(at * chunkBytes, (at + 1) * chunkBytes),
  );
  const parts: Uint8Array[] = [];
  for await (const part of ReadableStream.from(chunks).pipeThrough(stream)) parts.push(part);
  return Buffer.concat(parts);
}

const failure = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('envelope encryption of streams', () => {
  const service = new Service();
  const cipher = service.cipher();
  // The first segment has 40 bytes less, for the header of the stream, and each has 16 bytes for its tag.
  const first = mebibyte - 56;

  for (const size of [0, 1, first - 1, first, first + 1, first + mebibyte - 16, 3 * mebibyte])
    it(`round-trips ${size} bytes, in chunks of any size`, async () => {
      const content = randomBytes(size);
      const sealed = await through(cipher.encryptStream(), content);
      for (const chunkBytes of [size < 10 ? 1 : 7919, 5 * mebibyte])
        expect((await through(cipher.decryptStream(), sealed, chunkBytes)).equals(content)).to.equal(true);
    });

  it('has the format of messages in memory, in both directions', async () => {
    const content = randomBytes(2 * mebibyte);
    const data = randomBytes(9);
    expect(Buffer.from(await cipher.decrypt(await through(cipher.encryptStream(data), content), data)).equals(content)).to.equal(
      true,
    );
    expect((await through(cipher.decryptStream(data), await cipher.encrypt(content, data))).equals(content)).to.equal(true);
  });

  it('uses a new data key for each stream', async () => {
    const before = service.calls.length;
    const [one, two] = [
      await through(cipher.encryptStream(), Buffer.from('x')),
      await through(cipher.encryptStream(), Buffer.from('x')),
    ];
    expect(service.calls.slice(before)).to.deep.equal(['datakey', 'datakey']);
    expect(one.equals(two)).to.equal(false);
  });

  it('fails when anything was changed, cut, added or mixed', async () => {
    const sealed = await through(cipher.encryptStream(), randomBytes(2 * mebibyte));
    const other = await through(cipher.encryptStream(), randomBytes(2 * mebibyte));
    const start = sealed.indexOf('\n', sealed.indexOf('\n') + 1) + 1;
    const flipped = (at: number): Buffer => {
      const copy = Buffer.from(sealed);
      copy[at] = (copy[at] ?? 0) ^ 1;
      return copy;
    };
    const cases: Readonly<Record<string, Uint8Array>> = {
      nothing: Buffer.alloc(0),
      'half of the header': sealed.subarray(0, start - 5),
      'the header alone': sealed.subarray(0, start + 40),
      'the first segment alone': sealed.subarray(0, start + mebibyte),
      'one byte less': sealed.subarray(0, -1),
      'one byte more': Buffer.concat([sealed, Buffer.from('x')]),
      'a changed header': flipped(start + 3),
      'a changed segment': flipped(start + mebibyte + 100),
      'the end of another stream': Buffer.concat([sealed.subarray(0, start + mebibyte), other.subarray(start + mebibyte)]),
      'exchanged segments': Buffer.concat([
        sealed.subarray(0, start + mebibyte),
        sealed.subarray(start + 2 * mebibyte),
        sealed.subarray(start + mebibyte, start + 2 * mebibyte),
      ]),
      'another file': randomBytes(100_000),
    };
    for (const [what, bytes] of Object.entries(cases))
      expect(await failure(through(cipher.decryptStream(), bytes)), what).to.be.instanceOf(DamagedStream);
    expect(await failure(through(cipher.decryptStream(Buffer.from('data')), sealed))).to.be.instanceOf(DamagedStream);
    expect(await failure(through(service.cipher({}, 'another').decryptStream(), sealed))).to.be.instanceOf(DamagedStream);
  });

  it('returns no byte of a segment before it is verified, and needs the memory of a few segments', async () => {
    const sealed = await through(cipher.encryptStream(), Buffer.alloc(8 * mebibyte));
    sealed[sealed.length - 1] = (sealed.at(-1) ?? 0) ^ 1;
    let received = 0;
    const error = await failure(
      (async () => {
        const reader = ReadableStream.from([sealed]).pipeThrough(cipher.decryptStream());
        for await (const part of reader) {
          expect(part.length).to.be.at.most(mebibyte);
          received += part.length;
        }
      })(),
    );
    expect(error).to.be.instanceOf(DamagedStream);
    expect(received).to.be.below(8 * mebibyte);
  });

  it('asks for no data key before the first byte, and reports a refusal', async () => {
    const before = service.calls.length;
    const stream = cipher.encryptStream();
    expect(service.calls).to.have.length(before);
    service.fails = true;
    expect(await failure(through(stream, Buffer.from('x')))).to.match(/permission denied/);
    service.fails = false;
  });
});
