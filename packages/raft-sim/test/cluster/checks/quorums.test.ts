import { soleVoter } from '@transitd/raft-core';
import { expect } from 'chai';
import { isQuorum, quorumsOverlap } from '../../../src/cluster/checks/quorums.ts';

const conf = (voters: readonly number[], votersOutgoing: readonly number[] = []) => ({ ...soleVoter(1), voters, votersOutgoing });

describe('quorumsOverlap', () => {
  for (const [name, before, after, overlap] of [
    ['one voter more', conf([1, 2, 3]), conf([1, 2, 3, 4]), true],
    ['one voter fewer', conf([1, 2, 3]), conf([1, 2]), true],
    ['two voters more at once', conf([1, 2, 3]), conf([1, 2, 3, 4, 5]), false],
    ['one voter replaced at once', conf([1, 2, 3]), conf([1, 2, 4]), false],
    ['into a joint configuration', conf([1, 2, 3]), conf([4, 5, 6], [1, 2, 3]), true],
    ['out of a joint configuration', conf([4, 5, 6], [1, 2, 3]), conf([4, 5, 6]), true],
    ['past a joint configuration', conf([1, 2, 3]), conf([4, 5, 6]), false],
  ] as const) {
    it(`${overlap ? 'accepts' : 'refuses'} ${name}`, () => {
      expect(quorumsOverlap(before, after)).to.equal(overlap);
    });
  }
});

describe('isQuorum', () => {
  it('asks for a majority of both halves of a joint configuration', () => {
    const joint = conf([1, 2, 3], [3, 4, 5]);
    const has = (...ids: number[]) => isQuorum(joint, (id) => ids.includes(id));
    expect([has(1, 2), has(1, 2, 4), has(1, 3, 4), has(3, 4, 5)]).to.deep.equal([false, false, true, false]);
  });
});
