import type { ConfState } from '@transitd/raft-core';
import { expect } from 'chai';
import { fitnessOf, isAlone } from '../src/fitness.ts';

const unsealed = {
  isUnsealed: true,
  isReopening: false,
  initialized: true,
  alone: false,
  stateDigestDiffers: false,
  diskLow: false,
};

describe('the fitness of a node to lead', () => {
  for (const { name, parts, fitness } of [
    { name: 'is unsealed', parts: {}, fitness: 'fit' },
    { name: 'is unsealed and its disk is low', parts: { diskLow: true }, fitness: 'low' },
    { name: 'is sealed', parts: { isUnsealed: false }, fitness: 'sealed' },
    { name: 'is sealed and its disk is low', parts: { isUnsealed: false, diskLow: true }, fitness: 'sealed' },
    { name: 'is reopening a replaced state', parts: { isUnsealed: false, isReopening: true }, fitness: 'fit' },
    {
      name: 'is reopening a replaced state that differs from the cluster’s',
      parts: { isUnsealed: false, isReopening: true, stateDigestDiffers: true },
      fitness: 'sealed',
    },
    { name: 'has not received the cluster’s keys yet', parts: { isUnsealed: false, initialized: false }, fitness: 'fit' },
    { name: 'is sealed and the only member', parts: { isUnsealed: false, alone: true }, fitness: 'fit' },
    { name: 'has records that differ from the cluster’s', parts: { stateDigestDiffers: true }, fitness: 'sealed' },
    { name: 'is the only member and its records differ', parts: { alone: true, stateDigestDiffers: true }, fitness: 'sealed' },
  ])
    it(`is ${fitness} when it ${name}`, () => {
      expect(fitnessOf({ ...unsealed, ...parts })).to.equal(fitness);
    });
});

describe('isAlone', () => {
  const conf: ConfState = {
    voters: [1],
    votersOutgoing: [],
    learners: [],
    learnersNext: [],
    autoLeave: false,
    context: new Uint8Array(),
  };
  for (const { name, parts, alone } of [
    { name: 'is true for the only voter', parts: {}, alone: true },
    { name: 'is false with another voter', parts: { voters: [1, 2] }, alone: false },
    { name: 'is false with another outgoing voter', parts: { votersOutgoing: [1, 2] }, alone: false },
    { name: 'is false with a learner', parts: { learners: [2] }, alone: false },
    { name: 'is false for a learner', parts: { voters: [], learners: [1] }, alone: false },
    { name: 'is false for a node outside the configuration', parts: { voters: [2] }, alone: false },
    { name: 'is false for an empty configuration', parts: { voters: [] }, alone: false },
  ])
    it(name, () => {
      expect(isAlone({ ...conf, ...parts }, 1)).to.equal(alone);
    });
});
