import { expect } from 'chai';
import fc from 'fast-check';
import {
  type Incarnation,
  Incarnations,
  type IncarnationVerdict,
  readIncarnation,
  writeIncarnation,
} from '../../src/transport/incarnations.ts';

const incarnation = (number: number, copy: string): Incarnation => ({ number, nonce: copy.repeat(32) });

describe('the incarnations of a peer', () => {
  const cases: readonly [
    what: string,
    earlier: readonly Incarnation[],
    next: Incarnation,
    isConnected: boolean,
    verdict: IncarnationVerdict,
  ][] = [
    ['the first one', [], incarnation(7, 'a'), false, 'in order'],
    ['the same one again', [incarnation(7, 'a')], incarnation(7, 'a'), false, 'in order'],
    ['the same one again, while its earlier connection lasts', [incarnation(7, 'a')], incarnation(7, 'a'), true, 'in order'],
    ['the next one', [incarnation(7, 'a')], incarnation(8, 'b'), false, 'in order'],
    ['a later one', [incarnation(7, 'a')], incarnation(70, 'b'), false, 'in order'],
    ['the next one, while the one before is connected', [incarnation(7, 'a')], incarnation(8, 'b'), true, 'early'],
    ['the one before', [incarnation(7, 'a'), incarnation(8, 'b')], incarnation(7, 'a'), false, 'overtaken'],
    ['an earlier one that never connected', [incarnation(7, 'a')], incarnation(6, 'b'), false, 'overtaken'],
    ['an earlier one, while the later one is connected', [incarnation(7, 'a')], incarnation(6, 'b'), true, 'overtaken'],
    ['another one with the same number', [incarnation(7, 'a')], incarnation(7, 'b'), false, 'overtaken'],
  ];
  for (const [what, earlier, next, isConnected, verdict] of cases)
    it(`${verdict}: ${what}`, () => {
      const incarnations = new Incarnations();
      for (const one of earlier) {
        expect(incarnations.judge(1, one, false)).to.equal('in order');
        incarnations.connected(1, one);
      }
      incarnations.connected(2, incarnation(99, 'f'));
      expect(incarnations.judge(1, next, isConnected)).to.equal(verdict);
    });

  it('do not count before they have connected', () => {
    const incarnations = new Incarnations();
    expect(incarnations.judge(1, incarnation(9, 'a'), false)).to.equal('in order');
    expect(incarnations.judge(1, incarnation(8, 'b'), false)).to.equal('in order');
  });

  it('are read as they are written', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 999_999_999_999_999 }),
        fc.uint8Array({ minLength: 16, maxLength: 16 }),
        (number, bytes) => {
          const one = { number, nonce: Buffer.from(bytes).toString('hex') };
          expect(readIncarnation(writeIncarnation(one))).to.deep.equal(one);
        },
      ),
    );
  });

  for (const text of [
    '',
    '1',
    `0.${'a'.repeat(32)}`,
    `-1.${'a'.repeat(32)}`,
    `1.${'a'.repeat(31)}`,
    `1.${'g'.repeat(32)}`,
    `1.${'a'.repeat(33)}`,
    `${'9'.repeat(16)}.${'a'.repeat(32)}`,
    `1.${'a'.repeat(32)}, 2.${'b'.repeat(32)}`,
  ])
    it(`cannot be read from ${JSON.stringify(text)}`, () => {
      expect(readIncarnation(text)).to.equal(undefined);
    });
});
