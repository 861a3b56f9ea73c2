import type { ReplicationRole } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { replicationModes } from '../../src/standbys/replication-modes.ts';

const id = '0a'.repeat(16);
const modeIn = (role: ReplicationRole, epochs = [{ number: 1, id, start: 0 }]): string =>
  replicationModes({ role, set: id, local: [], epochs, index: 0, offset: 0, seen: 1 }).disasterRecovery;

describe('the replication modes of a cluster', () => {
  it('are disabled without replication', () => {
    expect(replicationModes(undefined)).to.deep.equal({ performance: 'disabled', disasterRecovery: 'disabled' });
    expect(modeIn('disabled', [])).to.equal('disabled');
  });

  it('are those of a secondary for each cluster that serves no clients', () => {
    expect(modeIn('primary')).to.equal('primary');
    for (const role of ['secondary', 'demoted', 'superseded'] as const) expect(modeIn(role), role).to.equal('secondary');
    expect(modeIn('secondary', []), 'without a state').to.equal('bootstrapping');
  });
});
