import { expect } from 'chai';
import { hexOf, StateComparison } from '../../src/standbys/state-comparison.ts';

describe('the comparison of records with the active node', () => {
  const setup = (digests: Record<number, bigint>, applied = 100) => {
    const state = { applied };
    const differences: number[] = [];
    const stateComparison = new StateComparison({
      appliedIndex: () => state.applied,
      digestAt: (index) => digests[index],
      onDifference: (index) => differences.push(index),
    });
    return { stateComparison, state, differences };
  };

  it('knows nothing before it was told', () => {
    expect(setup({ 100: 1n }).stateComparison.verdict).to.equal('unknown');
  });

  it('finds equal sums at one index the same', () => {
    const { stateComparison, differences } = setup({ 100: 0xabn });
    stateComparison.told({ index: 100, digest: hexOf(0xabn) });
    expect(stateComparison.verdict).to.equal('same');
    expect(differences).to.deep.equal([]);
  });

  it('waits until the index is applied here, even when newer ones are told meanwhile', () => {
    const { stateComparison, state } = setup({ 120: 5n }, 100);
    stateComparison.told({ index: 120, digest: hexOf(5n) });
    stateComparison.told({ index: 150, digest: hexOf(6n) });
    expect(stateComparison.verdict).to.equal('unknown');
    state.applied = 121;
    expect(stateComparison.verdict).to.equal('same');
  });

  it('says a difference once, and for good', () => {
    const { stateComparison, differences } = setup({ 90: 1n, 100: 2n });
    stateComparison.told({ index: 90, digest: hexOf(9n) });
    stateComparison.told({ index: 100, digest: hexOf(2n) });
    expect(stateComparison.verdict).to.equal('different');
    expect(differences).to.deep.equal([90]);
  });

  it('says nothing about an index whose sum is not kept any more', () => {
    const { stateComparison } = setup({});
    stateComparison.told({ index: 50, digest: hexOf(1n) });
    expect(stateComparison.verdict).to.equal('unknown');
  });
});
