import { expect } from 'chai';
import { explore } from './interleavings.ts';
import { type Fault, type ModelOptions, model, Violation } from './model.ts';

/** Every world of the model. `lagMax` 0 posts no change at all, 1 skips some, 9 posts all. */
const worlds: readonly ModelOptions[] = [0, 1, 9].flatMap((lagMax) =>
  [1, 2].flatMap((commits) => [true, false].map((isWarm) => ({ lagMax, commits, isWarm }))),
);

describe('two gateways, in every order of their steps', () => {
  for (const world of worlds)
    it(`never use a version older than their client knows: ${JSON.stringify(world)}`, () => {
      const { states, ends } = explore(() => model(world));
      expect(ends).to.be.above(0);
      expect(states).to.be.above(300);
    });

  const faults: readonly Fault[] = [
    'raises the counter before it posts',
    'answers a commit before it publishes the change',
    'does not drain when a request begins',
    'does not drain after an await',
    'sends replies through a port of their own',
    'ignores a gap in the numbers',
    'ignores that the port is empty',
  ];
  for (const fault of faults)
    it(`show the planted fault: ${fault}`, () => {
      const found = worlds.some((world) => {
        try {
          explore(() => model({ ...world, fault }));
          return false;
        } catch (error) {
          if (error instanceof Violation) return true;
          throw error;
        }
      });
      expect(found).to.equal(true);
    });
});
