import { expect } from 'chai';
import fc from 'fast-check';
import { codePoint } from '../../../../test/code-points.ts';
import { comparePaths, pathFault, prefixUpperBound } from '../../src/store/path.ts';

describe('pathFault', () => {
  for (const { path, because } of [
    { path: 'transit/1/key/a', because: 'slashes separate segments' },
    { path: 'ключ/🔑', because: 'any letters are allowed' },
    { path: '..', because: 'paths are not file names, so none is relative' },
    { path: 'a'.repeat(1024), because: '1,024 bytes are allowed' },
  ]) {
    it(`allows ${path.slice(0, 20)}: ${because}`, () => expect(pathFault(path)).to.equal(undefined));
  }

  for (const { path, fault } of [
    { path: '', fault: 'has an empty segment' },
    { path: '/a', fault: 'has an empty segment' },
    { path: 'a/', fault: 'has an empty segment' },
    { path: 'a//b', fault: 'has an empty segment' },
    { path: 'a\0', fault: 'has a control character' },
    { path: 'a\n', fault: 'has a control character' },
    { path: 'a\u007f', fault: 'has a control character' },
    { path: 'a\u0085', fault: 'has a control character' },
    { path: 'a'.repeat(1025), fault: 'is longer than 1024 bytes' },
    { path: 'é'.repeat(513), fault: 'is longer than 1024 bytes' },
    { path: '\ud800', fault: 'is not well-formed Unicode' },
  ]) {
    it(`refuses ${JSON.stringify(path.slice(0, 20))}: it ${fault}`, () => expect(pathFault(path)).to.equal(fault));
  }
});

describe('comparePaths', () => {
  it('sorts by UTF-8 bytes, also where UTF-16 sorts differently', () => {
    expect(comparePaths('\u{10000}', '\uffff')).to.be.above(0);
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', '/', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}'),
    });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(comparePaths(a, b))).to.equal(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });
});

describe('prefixUpperBound', () => {
  const bytes = (text: string): Buffer => Buffer.from(text);

  for (const { prefix, bound } of [
    { prefix: 'a/', bound: 'a0' },
    { prefix: 'a\u007f', bound: 'a\u0080' },
    { prefix: 'a\u07ff', bound: 'a\u0800' },
    { prefix: 'a\ud7ff', bound: 'a\ue000' },
    { prefix: 'a\uffff', bound: 'a\u{10000}' },
    { prefix: 'a\u{10ffff}', bound: 'b' },
    { prefix: '\u{10ffff}', bound: undefined },
    { prefix: 'a🔑\u{10ffff}\u{10ffff}', bound: 'a🔒' },
    { prefix: '', bound: undefined },
  ])
    it(`of ${JSON.stringify(prefix)} is ${JSON.stringify(bound)}`, () => {
      expect(prefixUpperBound(prefix)).to.equal(bound);
    });

  it('accepts a prefix of any length', () => {
    expect(prefixUpperBound(`${'a'.repeat(1_000_000)}b`)).to.equal(`${'a'.repeat(1_000_000)}c`);
  });

  it('separates the strings that begin with the prefix from the strings that sort after them', () =>
    fc.assert(
      fc.property(
        fc.string({ unit: codePoint, minLength: 1, maxLength: 4 }),
        fc.string({ unit: codePoint, maxLength: 4 }),
        fc.boolean(),
        (prefix, rest, below) => {
          const end = prefixUpperBound(prefix);
          const text = below ? prefix + rest : rest;
          const isBelow = end === undefined || Buffer.compare(bytes(text), bytes(end)) < 0;
          if (text.startsWith(prefix)) expect(isBelow).to.equal(true);
          else if (Buffer.compare(bytes(text), bytes(prefix)) > 0) expect(isBelow).to.equal(false);
        },
      ),
    ));
});
