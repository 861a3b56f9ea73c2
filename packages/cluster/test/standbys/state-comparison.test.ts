import type { Logger } from '@transitd/process';
import { expect } from 'chai';
import { MemberEvents } from '../../src/ports/member-events.ts';
import type { Storage } from '../../src/ports/storage-port.ts';
import { hexOf, StateComparison } from '../../src/standbys/state-comparison.ts';

describe('the comparison of state digests with the active node', () => {
  const setup = (digests: Record<number, bigint>, applied = 100) => {
    const state = { applied };
    const differences: number[] = [];
    const errors: string[] = [];
    const storage = {
      replica: { status: () => ({ appliedIndex: state.applied }) },
      machine: { digestAt: (index: number) => digests[index] },
    } as unknown as Pick<Storage, 'machine' | 'replica'>;
    const log = { error: (_fields: object, message: string) => errors.push(message) } as unknown as Logger;
    const events = new MemberEvents();
    events.on('digestDiffers', ({ index }) => differences.push(index));
    return { stateComparison: new StateComparison(storage, { log, events }), state, differences, errors };
  };

  it('is unknown before the first digest', () => {
    expect(setup({ 100: 1n }).stateComparison.verdict).to.equal('unknown');
  });

  it('agrees when the digests at one index are equal', () => {
    const { stateComparison, differences } = setup({ 100: 0xabn });
    stateComparison.compareWith({ index: 100, digest: hexOf(0xabn) });
    expect(stateComparison.verdict).to.equal('same');
    expect(differences).to.deep.equal([]);
  });

  it('waits until the index is applied on this node, even when newer digests arrive', () => {
    const { stateComparison, state } = setup({ 120: 5n }, 100);
    stateComparison.compareWith({ index: 120, digest: hexOf(5n) });
    stateComparison.compareWith({ index: 150, digest: hexOf(6n) });
    expect(stateComparison.verdict).to.equal('unknown');
    state.applied = 121;
    expect(stateComparison.verdict).to.equal('same');
  });

  it('reports a difference once, and keeps the verdict', () => {
    const { stateComparison, differences, errors } = setup({ 90: 1n, 100: 2n });
    stateComparison.compareWith({ index: 90, digest: hexOf(9n) });
    stateComparison.compareWith({ index: 100, digest: hexOf(2n) });
    expect(stateComparison.verdict).to.equal('different');
    expect(differences).to.deep.equal([90]);
    expect(errors)
      .to.have.length(1)
      .and.to.match(/state digest mismatch/);
  });

  it('stays unknown for an index whose digest is no longer kept', () => {
    const { stateComparison } = setup({});
    stateComparison.compareWith({ index: 50, digest: hexOf(1n) });
    expect(stateComparison.verdict).to.equal('unknown');
  });
});
