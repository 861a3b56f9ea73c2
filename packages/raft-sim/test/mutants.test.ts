import { expect } from 'chai';
import { hunt, mutated } from '../../../scripts/sim-mutant.ts';
import { mutants } from './mutants.ts';

/** Found within a few seeds, so another thread would load the simulator for nothing; `node scripts/sim-mutants.ts` plays the whole list. */
const sample = [
  'entries are acknowledged before they are durable',
  'an entry of an earlier term is committed by counting',
  'a vote is cleared within its term',
  'the high-water mark is ignored',
  'the driver answers a read before its entries are applied',
  'other threads keep the lease while a message shows what is not applied yet',
  'other threads get the lease before everything committed is applied',
  'proposals are answered before the applied entries are published',
];

describe('a fault planted in the core', () => {
  it('still applies to the sources, for every fault of the list', () => {
    expect(mutants.length).to.be.at.least(25);
    for (const mutant of mutants) expect(mutated(mutant), mutant.name).to.be.a('string');
  });

  for (const name of sample) {
    it(`is found: ${name}`, async () => {
      const mutant = mutants.find((each) => each.name === name);
      if (mutant === undefined) throw new Error('no such fault');
      expect(await hunt(mutant, { seeds: 300, events: 10_000, threads: 1 })).not.to.equal(undefined);
    });
  }
});
