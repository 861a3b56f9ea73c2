import { expect } from 'chai';
import { type RandomSource, random } from '../../src/operations/random.ts';

/** A seal that draws the same byte again and again. */
function sealOf(byte: number) {
  const drawn: Buffer[] = [];
  const seal: RandomSource = {
    bytesMax: 1024,
    draw: async (bytes) => {
      drawn.push(Buffer.alloc(bytes, byte));
      return drawn.at(-1) ?? Buffer.alloc(0);
    },
  };
  return { seal, drawn };
}
const hex = (byte: number, bytes: number): string => Buffer.alloc(bytes, byte).toString('hex');
const messageOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'it succeeded',
    (error: Error) => error.message,
  );

describe('random', () => {
  it('returns 1 to 131072 different bytes each time, in base64 or hex', async () => {
    expect(Buffer.from((await random({})).randomBytes, 'base64')).to.have.lengthOf(32);
    expect((await random({ bytes: 10, format: 'hex' })).randomBytes).to.match(/^[0-9a-f]{20}$/);
    expect((await random({ bytes: 131_072, format: 'hex' })).randomBytes).to.have.lengthOf(262_144);
    expect((await random({})).randomBytes).to.not.equal((await random({})).randomBytes);
  });

  it('warns about an unavailable source', async () => {
    expect((await random({ source: 'platform' })).warnings).to.deep.equal([]);
    for (const source of ['seal', 'all'])
      expect((await random({ source })).warnings.join()).to.contain('no seal/entropy augmentation');
  });

  it('returns the bytes of the seal without a warning, and wipes them', async () => {
    const { seal, drawn } = sealOf(0xab);
    expect(await random({ source: 'seal', bytes: 40, format: 'hex' }, seal)).to.deep.equal({
      randomBytes: hex(0xab, 40),
      warnings: [],
    });
    expect(drawn).to.deep.equal([Buffer.alloc(40)]);
  });

  it('combines the bytes of the seal with those of the machine, so that neither alone determines the result', async () => {
    const results = [];
    for (const byte of [0x00, 0xff]) {
      const { randomBytes, warnings } = await random({ source: 'all', bytes: 64, format: 'hex' }, sealOf(byte).seal);
      expect([randomBytes.length, warnings]).to.deep.equal([128, []]);
      expect(randomBytes).to.not.equal(hex(byte, 64));
      results.push(randomBytes);
    }
    expect(results[0]).to.not.equal(results[1]);
  });

  it('does not ask the seal for bytes of the machine', async () => {
    const { seal, drawn } = sealOf(1);
    for (const source of [undefined, 'platform']) await random({ source, bytes: 131_072 }, seal);
    expect(drawn).to.deep.equal([]);
  });

  it('fails with the seal instead of returning other bytes', async () => {
    const seal: RandomSource = { bytesMax: 1024, draw: () => Promise.reject(new Error('the seal is away')) };
    for (const source of ['seal', 'all']) expect(await messageOf(random({ source }, seal))).to.equal('the seal is away');
  });

  for (const [request, message] of [
    [{ bytes: 0 }, "'bytes' cannot be less than 1"],
    [{ bytes: 131_073 }, "'bytes' should be less than 131072"],
    [{ bytes: 1025, source: 'seal' }, '\'bytes\' cannot be more than 1024 for the source "seal"'],
    [{ bytes: 1025, source: 'all' }, '\'bytes\' cannot be more than 1024 for the source "all"'],
    [{ format: 'octal' }, 'unsupported encoding format "octal"; must be "hex" or "base64"'],
    [{ format: 'octal', source: 'seal' }, 'unsupported encoding format "octal"; must be "hex" or "base64"'],
    [{ source: 'moon' }, 'unsupported entropy source "moon"; must be "platform" or "seal", or "all"'],
  ] as const) {
    it(`refuses ${JSON.stringify(request)}`, async () => {
      const { seal, drawn } = sealOf(1);
      expect(await messageOf(random(request, seal))).to.equal(message);
      expect(drawn).to.deep.equal([]);
    });
  }
});
