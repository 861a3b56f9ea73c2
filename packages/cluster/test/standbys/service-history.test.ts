import type { Epoch, Replica, ReplicationRole, ReplicationState } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { reachedState } from '../../src/standbys/reached-state.ts';
import { placeOf, serviceIndexOf } from '../../src/standbys/service-history.ts';

const clusterId = '0b7c9f52-6d0e-4b2f-9a55-0f6f6f7f1c11';
const set = 'a'.repeat(32);
const epoch = (number: number, start: number, digit = String(number)): Epoch => ({ number, id: digit.repeat(32), start });
const [first, second] = [epoch(1, 10), epoch(2, 500)];

const stateOf = (role: ReplicationRole, epochs: readonly Epoch[], offset = 0): ReplicationState => ({
  ...{ role, set, local: [], epochs, index: 500, offset, seen: epochs.length },
});
const at = (state: ReplicationState | undefined) => ({ clusterId, replication: state });

/** Two primaries of a set, one after the other: east is the first one, and west is promoted at 500. */
const east = at(stateOf('primary', [first]));
const west = at(stateOf('primary', [first, second], 420));

describe('the history of a cluster', () => {
  it('is its log while it takes part in no replication', () => {
    for (const state of [undefined, stateOf('disabled', []), stateOf('secondary', [first]), stateOf('demoted', [first])])
      expect(serviceIndexOf(7, at(state))).to.deep.equal({ history: clusterId, index: 7 });
  });

  it('is the epoch of the set on a primary, with service indexes', () => {
    const one = serviceIndexOf(490, east);
    const other = serviceIndexOf(90, west);
    expect([one.index, other.index]).to.deep.equal([490, 510]);
    expect(one.history).to.include(set);
    expect(other.history, 'clients replace an index of another epoch').not.to.equal(one.history);
  });

  it('contains its own log indexes in each role', () => {
    for (const state of [undefined, stateOf('disabled', []), stateOf('secondary', [first]), stateOf('primary', [first])])
      expect(placeOf({ history: clusterId, index: 7 }, at(state))).to.deep.equal({ kind: 'log', index: 7 });
  });

  it('contains the former epoch up to the promotion, and no further', () => {
    expect(placeOf(serviceIndexOf(500, east), west)).to.deep.equal({ kind: 'contained' });
    expect(placeOf(serviceIndexOf(501, east), west)).to.deep.equal({ kind: 'lost' });
  });

  it('contains its own epoch as soon as the log is applied', () => {
    expect(placeOf(serviceIndexOf(90, west), west)).to.deep.equal({ kind: 'log', index: 90 });
  });

  it('does not know a later epoch, and has lost an epoch of another primary', () => {
    expect(placeOf(serviceIndexOf(90, west), east)).to.deep.equal({ kind: 'ahead' });
    const other = at(stateOf('primary', [first, epoch(2, 480, 'f')], 420));
    expect(placeOf(serviceIndexOf(90, other), west)).to.deep.equal({ kind: 'lost' });
  });

  it('requires nothing of a cluster that serves no clients', () => {
    for (const role of ['secondary', 'demoted', 'superseded'] as const)
      expect(placeOf(serviceIndexOf(900, east), at(stateOf(role, [first])))).to.deep.equal({ kind: 'contained' });
  });

  it('answers indexes of other clusters only if it took part in replication', () => {
    const foreign = { history: '1b7c9f52-6d0e-4b2f-9a55-0f6f6f7f1c11', index: 1 };
    expect(placeOf(foreign, at(undefined))).to.deep.equal({ kind: 'foreign' });
    expect(placeOf(serviceIndexOf(1, east), at(undefined))).to.deep.equal({ kind: 'foreign' });
    for (const role of ['primary', 'disabled'] as const)
      expect(placeOf(foreign, at(stateOf(role, role === 'primary' ? [first] : [])))).to.deep.equal({ kind: 'lost' });
  });
});

describe('waiting for an index', () => {
  const engineAt = (appliedIndex: number, replication: () => ReplicationState | undefined) => ({
    replica: { status: () => ({ appliedIndex }), watch: () => () => undefined } as unknown as Replica,
    status: () => ({ clusterId }),
    get replication() {
      return replication();
    },
  });

  it('waits for a promotion that this node has not applied', async () => {
    let reads = 0;
    const engine = engineAt(95, () => {
      reads += 1;
      return reads < 4 ? east.replication : west.replication;
    });
    expect(await reachedState(serviceIndexOf(90, west), 60_000, engine)).to.equal('reached');
  });

  for (const [wanted, withinMs, reached] of [
    [serviceIndexOf(90, west), 0, 'reached'],
    [serviceIndexOf(96, west), 10, 'behind'],
    [{ history: `${set}.3.${'3'.repeat(32)}`, index: 1 }, 30, 'behind'],
    [serviceIndexOf(501, east), 60_000, 'lost'],
  ] as const)
    it(`ends as ${reached} for ${wanted.index} of ${wanted.history.slice(33, 35)}`, async () => {
      expect(
        await reachedState(
          wanted,
          withinMs,
          engineAt(95, () => west.replication),
        ),
      ).to.equal(reached);
    });
});
