import { expect } from 'chai';
import { type Fault, processFaults } from '../cluster/harness/faults.ts';
import { etcdFaults } from './etcd-faults.ts';
import { type Round, schedule } from './schedule.ts';

const taken = (count: number, seed: number, size: number, faults: readonly Fault[] = processFaults): Round[] => {
  const rounds: Round[] = [];
  for (const round of schedule({ seed, size, faults, total: processFaults.slice(0, 1) })) {
    rounds.push(round);
    if (rounds.length === count) break;
  }
  return rounds;
};

describe('the schedule of a chaos run', () => {
  it('is the same for the same seed, and differs for another seed', () => {
    expect(taken(50, 1, 5)).to.deep.equal(taken(50, 1, 5));
    expect(taken(50, 1, 5)).not.to.deep.equal(taken(50, 2, 5));
  });

  for (const { size, victimsMax } of [
    { size: 3, victimsMax: 1 },
    { size: 5, victimsMax: 2 },
  ]) {
    it(`strikes at most ${victimsMax} of ${size} nodes in a round that leaves a majority`, () => {
      const rounds = taken(200, 3, size).filter(({ kind }) => kind === 'minority');
      expect(Math.max(...rounds.map(({ strikes }) => strikes.length))).to.equal(victimsMax);
    });
  }

  it('strikes the active node at most once in a round, and every node in a round against all', () => {
    for (const { kind, strikes } of taken(200, 4, 5)) {
      expect(strikes.filter(({ at }) => at === 'the active node').length).to.be.at.most(1);
      if (kind === 'all') expect(strikes.length).to.equal(5);
    }
  });

  it('has at most one fault of etcd in a round, and plays all of them', () => {
    const rounds = taken(200, 6, 5, [...processFaults, ...etcdFaults]).filter(({ kind }) => kind === 'minority');
    const shared = rounds.map(({ strikes }) => strikes.filter(({ fault }) => fault.isShared));
    expect(Math.max(...shared.map(({ length }) => length))).to.equal(1);
    const played = new Set(rounds.flatMap(({ strikes }) => strikes.map(({ fault }) => fault)));
    expect([...played]).to.include.members([...etcdFaults]);
  });

  it('plays every fault once before it repeats one', () => {
    const played = taken(200, 5, 3)
      .filter(({ kind }) => kind === 'minority')
      .flatMap(({ strikes }) => strikes.map(({ fault }) => fault.what));
    const names = processFaults.map(({ what }) => what).toSorted();
    for (let at = 0; at + names.length <= 30; at += names.length)
      expect(played.slice(at, at + names.length).toSorted()).to.deep.equal(names);
  });
});
