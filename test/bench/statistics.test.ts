import { expect } from 'chai';
import { median, percentile, ratioOf } from '../../bench/statistics.ts';

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

describe('median', () => {
  for (const { values, expected } of [
    { values: [], expected: Number.NaN },
    { values: [7], expected: 7 },
    { values: [10, 9, 1], expected: 9 },
    { values: [4, 1, 2, 100], expected: 3 },
  ]) {
    it(`of [${values}] is ${expected}`, () => expect(median(values)).to.deep.equal(expected));
  }
});

describe('percentile', () => {
  for (const [percent, expected] of [
    [1, 10],
    [50, 20],
    [75, 30],
    [99, 40],
    [100, 40],
  ] as const)
    it(`${percent} of four values is ${expected}, one of them`, () => {
      expect(percentile([40, 10, 30, 20], percent)).to.equal(expected);
    });
});
