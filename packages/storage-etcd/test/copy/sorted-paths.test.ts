import { comparePaths } from '@transitd/storage-fsm';
import { expect } from 'chai';
import fc from 'fast-check';
import { SortedPaths } from '../../src/copy/sorted-paths.ts';

const path = fc
  .tuple(fc.constantFrom('a/', 'b/', 'b/ü/', ''), fc.nat({ max: 5000 }))
  .map(([folder, number]) => `${folder}${number}`);

describe('sorted paths', () => {
  it('are those that were added and not deleted, in order, from any of them on', () => {
    const change = fc.oneof({ weight: 3, arbitrary: fc.record({ add: path }) }, fc.record({ remove: path }));
    fc.assert(
      fc.property(
        fc.array(change, { size: 'max', maxLength: 6000 }),
        path,
        fc.constantFrom('', 'a/', 'b/', 'b/ü/', 'c'),
        (changes, after, prefix) => {
          const [paths, model] = [new SortedPaths(), new Set<string>()];
          for (const one of changes) {
            if ('remove' in one) {
              paths.delete(one.remove);
              model.delete(one.remove);
            } else if (!model.has(one.add)) {
              paths.add(one.add);
              model.add(one.add);
            }
          }
          const sorted = [...model].filter((one) => one.startsWith(prefix)).sort(comparePaths);
          expect([...paths.below({ prefix })]).to.deep.equal(sorted);
          const later = sorted.filter((one) => comparePaths(one, after) > 0);
          expect([...paths.below({ prefix, after })]).to.deep.equal(later);
        },
      ),
      { numRuns: 30 },
    );
  });

  it('are in order when thousands arrive in order, in reverse, and in between', () => {
    const numbers = Array.from({ length: 5000 }, (_, number) => String(number).padStart(5, '0'));
    const inBetween = numbers.map((number) => `${number}/x`);
    for (const arriving of [numbers, numbers.toReversed(), [...numbers, ...inBetween], [...inBetween.toReversed(), ...numbers]]) {
      const paths = new SortedPaths();
      for (const one of arriving) paths.add(one);
      expect([...paths.below({ prefix: '' })]).to.deep.equal(arriving.toSorted(comparePaths));
      for (const one of numbers) paths.delete(one);
      expect([...paths.below({ prefix: '0' })].length).to.equal(arriving.length - numbers.length);
    }
  });
});
