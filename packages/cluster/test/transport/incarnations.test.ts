import { expect } from 'chai';
import fc from 'fast-check';
import {
  Incarnations,
  type IncarnationVerdict,
  type Run,
  readIncarnation,
  writeIncarnation,
} from '../../src/transport/incarnations.ts';

const run = (incarnation: number, copy: string): Run => ({ incarnation, nonce: copy.repeat(32) });

describe('the runs of a peer', () => {
  const cases: readonly [what: string, met: readonly Run[], next: Run, isConnected: boolean, verdict: IncarnationVerdict][] = [
    ['the first one', [], run(7, 'a'), false, 'in order'],
    ['the same one again', [run(7, 'a')], run(7, 'a'), false, 'in order'],
    ['the same one again, while its connection before lasts', [run(7, 'a')], run(7, 'a'), true, 'in order'],
    ['the next one', [run(7, 'a')], run(8, 'b'), false, 'in order'],
    ['a later one', [run(7, 'a')], run(70, 'b'), false, 'in order'],
    ['the next one, while the one before is connected', [run(7, 'a')], run(8, 'b'), true, 'early'],
    ['the one before', [run(7, 'a'), run(8, 'b')], run(7, 'a'), false, 'overtaken'],
    ['an earlier one that never was here', [run(7, 'a')], run(6, 'b'), false, 'overtaken'],
    ['an earlier one, while the later one is connected', [run(7, 'a')], run(6, 'b'), true, 'overtaken'],
    ['another of the same number', [run(7, 'a')], run(7, 'b'), false, 'overtaken'],
  ];
  for (const [what, met, next, isConnected, verdict] of cases)
    it(`${verdict}: ${what}`, () => {
      const runs = new Incarnations();
      for (const one of met) {
        expect(runs.judge(1, one, false)).to.equal('in order');
        runs.connected(1, one);
      }
      runs.connected(2, run(99, 'f'));
      expect(runs.judge(1, next, isConnected)).to.equal(verdict);
    });

  it('are not remembered before they have connected', () => {
    const runs = new Incarnations();
    expect(runs.judge(1, run(9, 'a'), false)).to.equal('in order');
    expect(runs.judge(1, run(8, 'b'), false)).to.equal('in order');
  });

  it('are read as they are written', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 999_999_999_999_999 }),
        fc.uint8Array({ minLength: 16, maxLength: 16 }),
        (number, bytes) => {
          const one = { incarnation: number, nonce: Buffer.from(bytes).toString('hex') };
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
    it(`are not read from ${JSON.stringify(text)}`, () => {
      expect(readIncarnation(text)).to.equal(undefined);
    });
});
