import { expect } from 'chai';
import fc from 'fast-check';
import { codePoint } from '../../../test/code-points.ts';
import { escapeControls, escapeInJson } from '../src/controls.ts';

const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const texts = fc.string({
  unit: fc.oneof(
    fc.constantFrom('\u001b', '\u009b', '\u009d', '\u202e', '\u2066', '\u2028', '\u{e0001}', '\n', '\t', '"', '\\'),
    fc.string({ unit: codePoint, minLength: 1, maxLength: 1 }),
  ),
});

describe('control characters', () => {
  it('are shown in text, except line feeds and tabs', () => {
    expect(escapeControls('a\u001b[2Jb\u009b\u202e\tc\nd\u2028\u{e0001}')).to.equal(
      'a\\u{1b}[2Jb\\u{9b}\\u{202e}\tc\nd\\u{2028}\\u{e0001}',
    );
    fc.assert(fc.property(texts, (text) => void expect(escapeControls(text).replace(/[\n\t]/g, '')).not.to.match(hidden)));
  });

  it('are escaped in JSON, which keeps its value', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const line = escapeInJson(JSON.stringify({ [text]: [text] }));
        expect(line).not.to.match(hidden);
        expect(JSON.parse(line)).to.deep.equal({ [text]: [text] });
      }),
    );
  });
});
