import { expect } from 'chai';
import fc from 'fast-check';
import { derInteger, derTag, encodeDer, encodeDerInteger, encodeOid, parseDer, parseDerSequence } from '../../src/formats/der.ts';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');

describe('DER', () => {
  it('of any element is decoded to the same element, also after another one, and refused when truncated', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.uint8Array({ maxLength: 400 }), fc.nat(), (tag, content, cut) => {
        const element = encodeDer(tag, content.subarray(0, 3), content.subarray(3));
        const read = { tag, content: Buffer.from(content) };
        expect(parseDer(element)).to.deep.equal(read);
        expect(parseDerSequence(Buffer.concat([element, element]))).to.deep.equal([read, read]);
        expect(parseDer(Buffer.concat([element, element]))).to.equal(undefined);
        expect(parseDer(element.subarray(0, cut % element.length))).to.equal(undefined);
      }),
    );
  });

  it('of a non-negative integer follows X.690 §8.3 and is decoded to the same integer', () => {
    for (const [number, encoded] of [
      ['', '020100'],
      ['00', '020100'],
      ['7f', '02017f'],
      ['80', '02020080'],
      ['0080', '02020080'],
      ['0100', '02020100'],
    ] as const) {
      expect(encodeDerInteger(hex(number)).toString('hex')).to.equal(encoded);
      const [element] = parseDerSequence(hex(encoded)) ?? [];
      expect(Buffer.from((element && derInteger(element)) ?? []).toString('hex')).to.equal(number.replace(/^(00)+/, ''));
    }
  });

  it('refuses overlong, negative and empty integers, and other tags', () => {
    for (const encoded of ['02020001', '020180', '0202ff80', '0200', '040101', '03020001']) {
      const [element] = parseDerSequence(hex(encoded)) ?? [];
      expect(element && derInteger(element), encoded).to.equal(undefined);
    }
  });

  it('refuses lengths that are not minimal, indefinite, or longer than four bytes', () => {
    for (const encoded of ['0481050000000000', '04820005', '3080020101', '0485000000000100', '0481', '1f8101', '04820100']) {
      expect(parseDerSequence(Buffer.concat([hex(encoded), Buffer.alloc(3)])), encoded).to.equal(undefined);
    }
    expect(parseDer(hex('04')), 'a tag alone').to.equal(undefined);
    expect(parseDer(encodeDer(derTag.octetString, Buffer.alloc(70_000)))?.content).to.have.length(70_000);
  });

  for (const [dotted, encoded] of [
    ['1.2.840.113549.1.1.1', '06092a864886f70d010101'],
    ['1.3.101.112', '06032b6570'],
    ['2.16.840.1.101.3.4.2.10', '060960864801650304020a'],
  ] as const) {
    it(`of the identifier ${dotted} is ${encoded}`, () => {
      expect(encodeOid(dotted).toString('hex')).to.equal(encoded);
    });
  }
});
