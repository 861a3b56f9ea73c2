import { expect } from 'chai';
import { WeightedCache } from '../../src/policy/weighted-cache.ts';

describe('a weighted cache', () => {
  it('evicts the oldest entries by weight and does not keep a value above the bound', () => {
    const cache = new WeightedCache<string>(10);
    for (const [key, weight] of [
      ['a', 4],
      ['b', 4],
      ['c', 5],
      ['d', 11],
    ] as const)
      cache.set(key, key, weight);
    expect([...cache.keys()]).to.deep.equal(['b', 'c']);
    cache.set('b', 'new', 5);
    expect([...cache.keys()].map((key) => cache.get(key))).to.deep.equal(['c', 'new']);
    expect(cache.evictedWeight, 'a, the value above the bound, and the replaced b').to.equal(4 + 11 + 4);
    cache.delete('c');
    cache.set('e', 'e', 5);
    expect([...cache.keys()]).to.deep.equal(['b', 'e']);
    cache.clear();
    expect(cache.evictedWeight).to.equal(4 + 11 + 4 + 5 + 10);
  });
});
