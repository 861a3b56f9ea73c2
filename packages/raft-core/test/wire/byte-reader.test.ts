import { expect } from 'chai';
import { ByteReader } from '../../src/wire/byte-reader.ts';
import { CodecError } from '../../src/wire/codec-error.ts';

describe('ByteReader', () => {
  it('reads big-endian integers of 8, 16, 32 and 48 bits, one after the other', () => {
    const reader = new ByteReader(Uint8Array.of(1, 1, 2, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6));
    expect([reader.u8(), reader.u16(), reader.u32(), reader.u48()]).to.deep.equal([1, 0x0102, 0x01020304, 0x010203040506]);
    reader.end();
  });

  it('returns views, not copies', () => {
    const bytes = Uint8Array.of(1, 2, 3);
    expect(new ByteReader(bytes).raw(2).buffer).to.equal(bytes.buffer);
  });

  it('refuses a read beyond the end, and bytes after the end', () => {
    const reader = new ByteReader(Uint8Array.of(1, 2));
    expect(() => reader.u32()).to.throw(CodecError, 'cut short');
    expect(() => reader.end()).to.throw(CodecError, 'left over');
    expect(reader.u16()).to.equal(0x0102);
    reader.end();
  });
});
