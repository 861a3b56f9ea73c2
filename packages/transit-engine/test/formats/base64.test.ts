import { expect } from 'chai';
import fc from 'fast-check';
import { decodeBase64, decodeBase64Url } from '../../src/formats/base64.ts';
import { TransitError } from '../../src/values/errors.ts';

function refusal(text: string): string {
  try {
    return `decoded ${decodeBase64(text).length} bytes`;
  } catch (error) {
    if (error instanceof TransitError) return error.message;
    throw error;
  }
}

describe('decodeBase64', () => {
  it('decodes any bytes that were encoded with the standard alphabet and padding', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect([...decodeBase64(Buffer.from(bytes).toString('base64'))]).to.deep.equal([...bytes]);
      }),
    );
  });

  it('skips line breaks at any position', () => {
    const breaks = fc.constantFrom('\n', '\r', '\r\n', '\n\n');
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 60 }),
        fc.array(fc.tuple(fc.nat(80), breaks), { maxLength: 5 }),
        (bytes, insertions) => {
          let text = Buffer.from(bytes).toString('base64');
          for (const [at, lineBreak] of insertions) text = text.slice(0, at) + lineBreak + text.slice(at);
          expect([...decodeBase64(text)]).to.deep.equal([...bytes]);
        },
      ),
    );
  });

  for (const { text, at, because } of [
    { text: 'not base64!', at: 3, because: 'a space is not skipped' },
    { text: '!!', at: 0, because: 'characters outside of the alphabet' },
    { text: 'AAAA!', at: 4, because: 'the offset counts from the beginning' },
    { text: 'aGVsbG8', at: 4, because: 'without padding, the group that is not whole is at fault' },
    { text: 'A', at: 0, because: 'a group of one' },
    { text: 'AAAAAA', at: 4, because: 'a group of two without padding' },
    { text: 'AA=', at: 3, because: 'one padding character of two, at the end' },
    { text: 'AA=A', at: 2, because: 'one padding character of two, followed by something else' },
    { text: 'A===', at: 1, because: 'padding after one character' },
    { text: '=', at: 0, because: 'padding alone' },
    { text: '====', at: 0, because: 'padding alone, a whole group' },
    { text: 'AA==AAAA', at: 4, because: 'more behind the padding' },
    { text: 'AAA=A', at: 4, because: 'more behind one padding character' },
    { text: 'AAA==', at: 4, because: 'too much padding' },
    { text: '-_-_', at: 0, because: 'the URL alphabet is another encoding' },
    { text: 'AB-A', at: 2, because: 'one character of the URL alphabet' },
    { text: 'AB_A', at: 2, because: 'one character of the URL alphabet' },
    { text: '\u0141\u0142\u0143\u0144', at: 0, because: 'a low byte that would fit is not the character' },
    { text: 'ABC\u00ff', at: 3, because: 'a Latin-1 character' },
    { text: 'ÿA!A', at: 0, because: 'offsets are those of UTF-8' },
    { text: 'AA\nA', at: 1, because: 'a short group counts back from the end, line break included' },
  ]) {
    it(`refuses ${JSON.stringify(text)} at byte ${at}: ${because}`, () => {
      expect(refusal(text)).to.equal(`illegal base64 data at input byte ${at}`);
    });
  }

  it('skips line breaks between, before and after padding', () => {
    for (const text of ['YQ=\n=', 'YQ\r\n==', 'YQ==\n', 'Y\nQ\n=\n=\n', '\nYQ=='])
      expect(decodeBase64(text).toString()).to.equal('a');
    expect(refusal('YQ==\nYQ==')).to.equal('illegal base64 data at input byte 5');
    expect(refusal('\n\n')).to.equal('decoded 0 bytes');
  });

  it('accepts a last character with unused bits set', () => {
    expect(decodeBase64('YR==').toString()).to.equal('a');
    expect(decodeBase64('YWJ=').toString()).to.equal('ab');
  });

  it('reports the offset in a large text with line breaks', () => {
    const text = `${'A'.repeat(76)}\r\n`.repeat(10_000);
    expect(refusal(`${text}AAA!`)).to.equal(`illegal base64 data at input byte ${text.length + 3}`);
    expect(refusal(`${text}AA`)).to.equal(`illegal base64 data at input byte ${text.length}`);
  });

  it('refuses any text with a character that is neither in the alphabet nor a line break', () => {
    const foreign = fc
      .string({ minLength: 1, maxLength: 1, unit: 'grapheme' })
      .filter((text) => !/^[A-Za-z0-9+/=\r\n]+$/.test(text));
    fc.assert(
      fc.property(fc.base64String({ minLength: 4, maxLength: 40 }), fc.nat(40), foreign, (text, at, character) => {
        expect(refusal(text.slice(0, at) + character + text.slice(at))).to.match(/^illegal base64 data at input byte \d+$/);
      }),
    );
  });
});

describe('base64url without padding', () => {
  it('decodes any bytes that were encoded', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        expect(decodeBase64Url(Buffer.from(bytes).toString('base64url'))).to.deep.equal(Buffer.from(bytes));
      }),
    );
  });

  for (const text of ['A', 'AAAAA', 'AA==', 'AA=', 'A+', 'A/', 'AA\n', 'A A', 'Aé', 'AA.']) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      expect(decodeBase64Url(text)).to.equal(undefined);
    });
  }
});
