import { expect } from 'chai';
import fc from 'fast-check';
import { decodeHalves, encodeHalves } from '../../src/key-pairs/hybrid.ts';

describe('the encoding of hybrid halves', () => {
  it('returns the two byte strings that were encoded', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (pqc, ec) => {
        const pair = decodeHalves(encodeHalves({ pqc, ec }));
        expect(pair && { pqc: Uint8Array.from(pair.pqc), ec: Uint8Array.from(pair.ec) }).to.deep.equal({ pqc, ec });
      }),
    );
  });

  it('is unique: decoded bytes are encoded to the same bytes', () => {
    const lengths = fc.integer({ min: 0, max: 10 }).map((length) => Buffer.of(0, 0, 0, length));
    fc.assert(
      fc.property(lengths, fc.uint8Array({ maxLength: 12 }), (length, rest) => {
        const bytes = Buffer.concat([length, rest]);
        const pair = decodeHalves(bytes);
        expect(pair === undefined ? bytes.readUInt32BE(0) > rest.length : encodeHalves(pair).equals(bytes)).to.equal(true);
      }),
    );
  });

  for (const { bytes, because } of [
    { bytes: '', because: 'there is no length' },
    { bytes: '000000', because: 'the length is truncated' },
    { bytes: '00000001', because: 'the first half is truncated' },
    { bytes: 'ffffffff00', because: 'the length is beyond the end' },
  ]) {
    it(`refuses ${bytes || 'no bytes'}: ${because}`, () => expect(decodeHalves(Buffer.from(bytes, 'hex'))).to.equal(undefined));
  }
});
