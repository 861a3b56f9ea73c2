import { expect } from 'chai';
import { hunt, mutated } from './hunt.ts';
import { replicationMutants } from './mutants.ts';
import { play } from './play.ts';

/** A few faults that are found soon; `node scripts/sim-replication.ts --mutants` plays the whole list. */
const sample = [
  'a connection outlives its epoch',
  'the writes of a conflict are streamed',
  'a promotion does not wait for the fence',
  'a restore is streamed as an entry without writes',
];

describe('replication between simulated clusters', () => {
  it('keeps its rules, and meets what it is made for', async () => {
    const totals: Record<string, number> = {};
    for (let seed = 1; seed <= 30; seed++)
      for (const [name, count] of Object.entries(await play(seed))) totals[name] = (totals[name] ?? 0) + count;
    for (const name of [
      'acknowledged',
      'conflicts',
      'restores',
      'beforeRestore',
      'left',
      'lost',
      'lossless',
      'resumes',
      'overtaken',
      'adoptions',
      'diverged',
      'behind',
      'ended',
      'used',
      'heldBack',
    ])
      expect(totals[name], name).to.be.greaterThan(0);
  });

  it('can still be mutated at each place of the list', () => {
    for (const mutant of replicationMutants) expect(mutated(mutant), mutant.name).to.be.a('string');
  });

  for (const name of sample) {
    it(`finds a planted fault: ${name}`, async () => {
      const mutant = replicationMutants.find((each) => each.name === name);
      if (mutant === undefined) throw new RangeError('no such fault');
      expect(await hunt(mutant, 100)).not.to.equal(undefined);
    });
  }
});
