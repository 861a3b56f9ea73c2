import { expect } from 'chai';
import fc from 'fast-check';
import { majority, majorityValue } from '../../src/quorum/majority.ts';

const stored = (indexes: readonly number[]) => ({
  voters: indexes.map((_, i) => i + 1),
  valueFor: (id: number) => indexes[id - 1] ?? 0,
});
const reached = (indexes: readonly number[]) => {
  const { voters, valueFor } = stored(indexes);
  return majorityValue(voters, valueFor);
};

describe('majority', () => {
  it('is more than half', () => {
    expect([1, 2, 3, 4, 5, 6, 7].map(majority)).to.deep.equal([1, 2, 2, 3, 3, 4, 4]);
  });
});

describe('majorityValue', () => {
  it('ignores the slowest of three voters, so one slow disk does not stop commits', () => {
    expect(reached([9, 9, 0])).to.equal(9);
  });

  for (const { indexes, expected, because } of [
    { indexes: [7], expected: 7, because: 'a lone voter is its own majority' },
    { indexes: [9, 9, 3, 1], expected: 3, because: 'two of four are not a majority' },
    { indexes: [5, 4, 3, 2, 1], expected: 3, because: 'three of five hold it' },
    { indexes: [], expected: Number.NEGATIVE_INFINITY, because: 'zero voters have no majority' },
  ]) {
    it(`of [${indexes}] is ${expected}: ${because}`, () => {
      expect(reached(indexes)).to.equal(expected);
    });
  }

  it('is the highest value that a majority reaches', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { minLength: 1, maxLength: 9 }), (indexes) => {
        const reaching = (index: number) => indexes.filter((have) => have >= index).length;
        const result = reached(indexes);
        expect(reaching(result)).to.be.at.least(majority(indexes.length));
        expect(reaching(result + 1)).to.be.below(majority(indexes.length));
      }),
    );
  });
});
