import { expect } from 'chai';
import fc from 'fast-check';
import { readRecord, recordBytes, writeRecord } from '../../src/log/record.ts';

const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const u48 = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const someEntry = fc.record({
  term: u48,
  index: u48,
  type: fc.constantFrom('normal' as const, 'noop' as const, 'conf' as const),
  data: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
});
const someLinks = fc.record({ prevCrc: u32, batchStart: u32, seed: u32 });

describe('a record', () => {
  it('is read back as it was written', () => {
    fc.assert(
      fc.property(someEntry, someLinks, fc.nat(50), (entry, links, at) => {
        const bytes = Buffer.alloc(at + recordBytes(entry) + 10);
        const crc = writeRecord(bytes, at, entry, links);
        const { prevCrc, batchStart } = links;
        expect(readRecord(bytes, at, links.seed)).to.deep.equal({
          ...entry,
          offset: at,
          bytes: recordBytes(entry),
          crc,
          prevCrc,
          batchStart,
        });
      }),
    );
  });

  it('is rejected after any change of up to 32 adjacent bits', () => {
    fc.assert(
      fc.property(someEntry, someLinks, fc.nat(), fc.integer({ min: 1, max: 2 ** 32 - 1 }), (entry, links, place, mask) => {
        const bytes = Buffer.alloc(recordBytes(entry));
        writeRecord(bytes, 0, entry, links);
        const at = place % (bytes.length - 3);
        bytes.writeUInt32BE((bytes.readUInt32BE(at) ^ mask) >>> 0, at);
        expect(readRecord(bytes, 0, links.seed)).to.equal(undefined);
      }),
    );
  });

  it('is rejected in another segment and inside an entry that holds a copy of it', () => {
    fc.assert(
      fc.property(someEntry, someLinks, u32, (entry, links, seed) => {
        fc.pre(seed !== links.seed);
        const bytes = Buffer.alloc(recordBytes(entry));
        writeRecord(bytes, 0, entry, links);
        expect(readRecord(bytes, 0, seed)).to.equal(undefined);
      }),
    );
  });

  it('is never found among zeros', () => {
    fc.assert(
      fc.property(u32, (seed) => {
        expect(readRecord(Buffer.alloc(100), 0, seed)).to.equal(undefined);
      }),
    );
  });
});
