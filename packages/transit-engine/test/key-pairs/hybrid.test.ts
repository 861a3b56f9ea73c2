import { expect } from 'chai';
import fc from 'fast-check';
import { decodeHalves, encodeHalves } from '../../src/key-pairs/hybrid.ts';

describe('a pair', () => {
  it('is two byte strings that come out as they went in', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (pqc, ec) => {
        const pair = decodeHalves(encodeHalves({ pqc, ec }));
        expect(pair && { pqc: Uint8Array.from(pair.pqc), ec: Uint8Array.from(pair.ec) }).to.deep.equal({ pqc, ec });
      }),
    );
  });

  it('has one encoding: what is read is written again as it was', () => {
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
    { bytes: '000000', because: 'the length is cut' },
    { bytes: '00000001', because: 'the first half is cut' },
    { bytes: 'ffffffff00', because: 'the length is beyond the end' },
  ]) {
    it(`is not ${bytes || 'nothing'}: ${because}`, () => expect(decodeHalves(Buffer.from(bytes, 'hex'))).to.equal(undefined));
  }
});
