import type { ReplicationState } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { Link } from './memory-link.ts';
import { epochId, otherId, TestPrimary, TestSecondary } from './session-fixtures.ts';

const first = { number: 1, id: epochId, start: 10 };

/** A former primary that was demoted in epoch 1, and does not know of a later one. */
function demoted(): TestPrimary {
  const primary = new TestPrimary();
  primary.write('transit/key', 'former');
  primary.current = { ...(primary.current as ReplicationState), role: 'demoted', epochs: [first], index: primary.index };
  return primary;
}

function secondaryAt(...epochs: ReplicationState['epochs']): TestSecondary {
  const secondary = new TestSecondary();
  secondary.current = { ...(secondary.current as ReplicationState), epochs, index: 12 };
  return secondary;
}

const later = { number: 2, id: otherId, start: 11 };

describe('a secondary that connects to a cluster of an older epoch', () => {
  it('stops, and stages nothing of its state', async () => {
    const [primary, secondary] = [demoted(), secondaryAt(first, later)];
    const link = new Link(primary, secondary);
    await link.until(() => link.ends['secondary'] !== undefined);
    expect(link.ends['secondary']).to.deep.equal({ why: 'stop', reason: 'primary_is_older' });
    expect(secondary.steps).to.deep.equal([]);
  });

  it('tells a live primary of the later epoch, also when it asks for the whole state', async () => {
    const [primary, secondary] = [demoted(), secondaryAt(first, later)];
    primary.current = { ...(primary.current as ReplicationState), role: 'primary' };
    secondary.wantsWholeState = true;
    const link = new Link(primary, secondary);
    await link.until(() => link.ends['primary'] !== undefined);
    expect(primary.supersededBy).to.deep.equal([otherId]);
    expect(link.ends['primary']).to.deep.equal({ why: 'superseded' });
    expect(link.ends['secondary'], 'it connects again').to.equal(undefined);
  });

  it('stops if that epoch has the same number and another id', async () => {
    const [primary, secondary] = [demoted(), secondaryAt({ ...first, id: otherId })];
    const link = new Link(primary, secondary);
    await link.until(() => link.ends['secondary'] !== undefined);
    expect(link.ends['secondary']).to.deep.equal({ why: 'stop', reason: 'primary_is_older' });
  });

  it('connects again if a step of an earlier connection has brought the later epoch after the hello', async () => {
    const [primary, secondary] = [demoted(), secondaryAt(first)];
    const link = new Link(primary, secondary);
    secondary.current = { ...(secondary.current as ReplicationState), epochs: [first, later], index: 13 };
    await link.until(() => link.ends['secondary'] !== undefined);
    expect(link.ends['secondary']).to.deep.equal({ why: 'reconnect', reason: 'other_epoch' });
    expect(secondary.steps).to.deep.equal([]);
  });
});
