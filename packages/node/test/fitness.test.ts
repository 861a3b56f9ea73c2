import type { ConfState } from '@transitd/raft-core';
import { expect } from 'chai';
import { fitnessOf, isAlone } from '../src/fitness.ts';

const unsealed = { isUnsealed: true, initialized: true, alone: false, differs: false, diskLow: false };

describe('the fitness of a node to lead', () => {
  for (const { name, parts, fitness } of [
    { name: 'serves', parts: {}, fitness: 'fit' },
    { name: 'serves with little room on its disk', parts: { diskLow: true }, fitness: 'low' },
    { name: 'is sealed', parts: { isUnsealed: false }, fitness: 'sealed' },
    { name: 'is sealed with little room on its disk', parts: { isUnsealed: false, diskLow: true }, fitness: 'sealed' },
    { name: 'does not know the cluster’s keys yet', parts: { isUnsealed: false, initialized: false }, fitness: 'fit' },
    { name: 'is sealed, and all that its cluster has', parts: { isUnsealed: false, alone: true }, fitness: 'fit' },
    { name: 'has other records than its cluster', parts: { differs: true }, fitness: 'sealed' },
    { name: 'is alone with other records', parts: { alone: true, differs: true }, fitness: 'sealed' },
  ])
    it(`is ${fitness} where it ${name}`, () => {
      expect(fitnessOf({ ...unsealed, ...parts })).to.equal(fitness);
    });
});

describe('a node is alone', () => {
  const conf: ConfState = {
    voters: [1],
    votersOutgoing: [],
    learners: [],
    learnersNext: [],
    autoLeave: false,
    context: new Uint8Array(),
  };
  for (const { name, parts, alone } of [
    { name: 'as the only voter', parts: {}, alone: true },
    { name: 'not beside another voter', parts: { voters: [1, 2] }, alone: false },
    { name: 'not while another voter is going', parts: { votersOutgoing: [1, 2] }, alone: false },
    { name: 'not beside a learner', parts: { learners: [2] }, alone: false },
    { name: 'not as a learner', parts: { voters: [], learners: [1] }, alone: false },
    { name: 'not in a cluster of others', parts: { voters: [2] }, alone: false },
    { name: 'not before it knows of any voter', parts: { voters: [] }, alone: false },
  ])
    it(name, () => {
      expect(isAlone({ ...conf, ...parts }, 1)).to.equal(alone);
    });
});
