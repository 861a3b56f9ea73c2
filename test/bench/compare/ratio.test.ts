import { expect } from 'chai';
import { ratioOf } from '../../../bench/compare/ratio.ts';

const counted = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at + 1);
const ones = (count: number): readonly number[] => counted(count).map(() => 1);

describe('ratios of paired measurements', () => {
  it('have the median of the pairs', () => {
    expect(ratioOf([2, 8, 3, 3, 9, 4], [1, 2, 3, 1, 9, 1]).median).to.equal(2.5);
    expect(ratioOf(counted(7), ones(7)).median).to.equal(4);
  });

  // Tables of the sign test: the interval of 6 pairs is their range, that of 10 the 2nd to the 9th, that of 30 the 10th to the 21st.
  for (const [count, low, high] of [
    [6, 1, 6],
    [10, 2, 9],
    [30, 10, 21],
  ] as const)
    it(`have the interval ${low} to ${high} of ${count} pairs`, () => {
      expect(ratioOf(counted(count), ones(count))).to.include({ low, high });
    });
});
