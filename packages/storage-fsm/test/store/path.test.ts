import { expect } from 'chai';
import fc from 'fast-check';
import { behindAllBelow, comparePaths, pathFault } from '../../src/store/path.ts';

describe('pathFault', () => {
  for (const { path, because } of [
    { path: 'transit/1/key/a', because: 'segments are what lies between slashes' },
    { path: 'ключ/🔑', because: 'any letters do' },
    { path: '..', because: 'paths are no file names: nothing is relative' },
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
  it('sorts as the bytes of UTF-8 do, also where UTF-16 sorts otherwise', () => {
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

describe('behindAllBelow', () => {
  const bytes = (text: string): Buffer => Buffer.from(text);

  for (const { prefix, behind } of [
    { prefix: 'a/', behind: 'a0' },
    { prefix: 'a\u007f', behind: 'a\u0080' },
    { prefix: 'a\u07ff', behind: 'a\u0800' },
    { prefix: 'a\ud7ff', behind: 'a\ue000' },
    { prefix: 'a\uffff', behind: 'a\u{10000}' },
    { prefix: 'a\u{10ffff}', behind: 'b' },
    { prefix: '\u{10ffff}', behind: undefined },
    { prefix: 'a🔑\u{10ffff}\u{10ffff}', behind: 'a🔒' },
    { prefix: '', behind: undefined },
  ])
    it(`raises ${JSON.stringify(prefix)} to ${JSON.stringify(behind)}`, () => {
      expect(behindAllBelow(prefix)).to.equal(behind);
    });

  it('raises a prefix of any length', () => {
    expect(behindAllBelow(`${'a'.repeat(1_000_000)}b`)).to.equal(`${'a'.repeat(1_000_000)}c`);
  });

  it('parts what begins with the prefix from what sorts behind it', () =>
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', minLength: 1, maxLength: 4 }),
        fc.string({ unit: 'binary', maxLength: 4 }),
        fc.boolean(),
        (prefix, rest, below) => {
          const end = behindAllBelow(prefix);
          const text = below ? prefix + rest : rest;
          const isBelow = end === undefined || Buffer.compare(bytes(text), bytes(end)) < 0;
          if (text.startsWith(prefix)) expect(isBelow).to.equal(true);
          else if (Buffer.compare(bytes(text), bytes(prefix)) > 0) expect(isBelow).to.equal(false);
        },
      ),
    ));
});
