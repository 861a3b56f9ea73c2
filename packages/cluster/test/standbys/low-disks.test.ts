import { expect } from 'chai';
import { lowDisksThatBlock } from '../../src/standbys/low-disks.ts';

describe('lowDisksThatBlock', () => {
  for (const { title, voters, votersOutgoing = [], low, blocking } of [
    { title: 'names two low disks of three', voters: [1, 2, 3], low: [3, 2], blocking: [2, 3] },
    { title: 'names none while two of three disks have room', voters: [1, 2, 3], low: [2], blocking: [] },
    { title: 'names two low disks of four', voters: [1, 2, 3, 4], low: [1, 4], blocking: [1, 4] },
    { title: 'names the disk of the only voter', voters: [7], low: [7], blocking: [7] },
    { title: 'ignores the disk of a learner', voters: [1, 2, 3], low: [2, 9], blocking: [] },
    { title: 'needs a majority of both halves', voters: [1, 2, 3], votersOutgoing: [4, 5], low: [2, 5], blocking: [5] },
    { title: 'names a voter of both halves once', voters: [1, 2], votersOutgoing: [2, 3], low: [2], blocking: [2] },
    { title: 'names none when no disk is low', voters: [1], low: [], blocking: [] },
  ])
    it(title, () => {
      expect(lowDisksThatBlock({ voters, votersOutgoing }, (id) => low.includes(id))).to.deep.equal(blocking);
    });
});
