import { expect } from 'chai';
import fc from 'fast-check';
import { type BudgetedCache, CacheBudget } from '../../src/keys/cache-budget.ts';

const bytesMax = 1000;

/** Entries of these sizes, the oldest first. */
class Entries implements BudgetedCache {
  sizes: number[] = [];
  get bytes(): number {
    return this.sizes.reduce((sum, each) => sum + each, 0);
  }
  giveUp(): void {
    expect(this.sizes, 'only a cache that holds something gives up').to.not.be.empty;
    this.sizes.shift();
  }
}

const sizes = fc.array(fc.tuple(fc.nat(4), fc.integer({ min: 1, max: bytesMax }), fc.boolean()), { maxLength: 60 });

describe('CacheBudget', () => {
  it('is never exceeded, whatever grows and shrinks, and what it takes away was not in a smaller cache than others', () => {
    fc.assert(
      fc.property(sizes, (steps) => {
        const budget = new CacheBudget(bytesMax);
        const caches = Array.from({ length: 5 }, () => new Entries());
        for (const cache of caches) budget.add(cache);
        for (const [at, size, shrinks] of steps) {
          const cache = caches[at] as Entries;
          if (shrinks) {
            cache.sizes.shift(); // without a report, as when a key changes
            continue;
          }
          cache.sizes.push(size);
          const before = caches.map(({ bytes }) => bytes);
          const total = before.reduce((sum, each) => sum + each, 0);
          budget.grew(cache);
          const after = caches.map(({ bytes }) => bytes);
          expect(after.reduce((sum, each) => sum + each, 0)).to.be.at.most(bytesMax);
          if (total <= bytesMax) expect(after).to.deep.equal(before);
          const largest = Math.max(...after);
          for (const [i, bytes] of before.entries()) if (after[i] !== bytes) expect(bytes).to.be.at.least(largest);
        }
      }),
    );
  });

  it('does not count what was removed, and ignores its reports', () => {
    const budget = new CacheBudget(bytesMax);
    const [one, other] = [new Entries(), new Entries()];
    budget.add(one);
    budget.add(other);
    one.sizes = [600];
    budget.grew(one);
    budget.remove(one);
    other.sizes = [900];
    budget.grew(other);
    budget.grew(one);
    expect([one.sizes, other.sizes]).to.deep.equal([[600], [900]]);
  });
});
