import { expect } from 'chai';
import { countWhile } from '../../src/store/sorted.ts';

describe('countWhile', () => {
  it('returns how many items of a sorted list come first, for every list and every bound', () => {
    for (let length = 0; length < 9; length++) {
      const items = Array.from({ length }, (_, at) => 2 * at);
      for (let bound = -1; bound <= 2 * length; bound++)
        expect(
          countWhile(items, (item) => item <= bound),
          `${length} items, ${bound}`,
        ).to.equal(items.filter((item) => item <= bound).length);
    }
  });
});
