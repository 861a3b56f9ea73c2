import { expect } from 'chai';
import fc from 'fast-check';
import { runAtOnce, runInSlices, sorted } from '../src/steps.ts';

describe('runAtOnce and runInSlices', () => {
  it('sort like Array.sort, including astral characters and duplicates', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 3 })), (texts) => {
        expect(runAtOnce(sorted(texts))).to.deep.equal([...texts].sort());
      }),
    );
  });

  it('let other work run while they sort many texts', async () => {
    const texts = Array.from({ length: 300_001 }, (_, n) => String((n * 7919) % 300_007));
    let turns = 0;
    const others = setInterval(() => {
      turns += 1;
    });
    const result = await runInSlices(sorted(texts));
    clearInterval(others);
    expect(result).to.deep.equal(texts.sort());
    expect(turns).to.be.greaterThan(2);
  });

  it('pass on the error of a step', async () => {
    function* failing(): Generator<undefined, never> {
      yield;
      throw new Error('no further');
    }
    expect(() => runAtOnce(failing())).to.throw('no further');
    expect(await runInSlices(failing()).catch((error: Error) => error.message)).to.equal('no further');
  });
});
