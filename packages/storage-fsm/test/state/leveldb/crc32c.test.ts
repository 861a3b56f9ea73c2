import { expect } from 'chai';
import fc from 'fast-check';
import { crc32c } from '../../../src/state/leveldb/crc32c.ts';

describe('crc32c', () => {
  // RFC 3720 appendix B.4 (which prints the bytes in the order of the wire)
  for (const { name, bytes, crc } of [
    { name: '32 bytes of zeros', bytes: Buffer.alloc(32), crc: 0x8a9136aa },
    { name: '32 bytes of ones', bytes: Buffer.alloc(32, 0xff), crc: 0x62a8ab43 },
    { name: '32 incrementing bytes', bytes: Buffer.from(Array.from({ length: 32 }, (_, i) => i)), crc: 0x46dd794e },
    { name: '32 decrementing bytes', bytes: Buffer.from(Array.from({ length: 32 }, (_, i) => 31 - i)), crc: 0x113fdb5c },
  ]) {
    it(`matches RFC 3720 for ${name}`, () => expect(crc32c(bytes)).to.equal(crc));
  }

  it('equals a bit-by-bit division, for any length and position in memory', () => {
    const bitwise = (bytes: Uint8Array): number => {
      let crc = 0xffffffff;
      for (const byte of bytes) {
        crc ^= byte;
        for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
      }
      return ~crc >>> 0;
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(5), (bytes, from) => {
        expect(crc32c(bytes.subarray(from))).to.equal(bitwise(bytes.subarray(from)));
      }),
    );
  });
});
