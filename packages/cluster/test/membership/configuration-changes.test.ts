import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { MemberOperations } from '../../src/maintenance/member-operations.ts';
import { ConfigurationChanges } from '../../src/membership/configuration-changes.ts';
import { encodeMembership, type Member, type Membership } from '../../src/membership/membership.ts';

const member = (id: number): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: String(id).repeat(64),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
});
const before: Membership = { members: [1, 2, 3].map(member), removed: [] };
const { id, name, certificate } = member(3);
const after: Membership = { members: [1, 2].map(member), removed: [{ id, name, certificate }] };

/**
 * Node 1, whose log has the removal of n3, not committed yet. Its `fate` shows when a caller waits: it is committed, or another leader
 * replaced it, or neither.
 */
function withPendingRemoval(fate: 'committed' | 'rolled back' | 'open') {
  const conf = (membership: Membership) => ({
    ...{ voters: membership.members.map((one) => one.id), context: encodeMembership(membership) },
    ...{ votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false },
  });
  const world = { conf: conf(after), confIndex: 7, committedConfIndex: 3, proposed: 0, pauses: 0 };
  const driver = {
    status: () => ({ nodeId: 1, term: 2 }),
    consensus: () => world,
    peers: () => [2, 3].map((peer) => ({ id: peer, active: true })),
    proposeConf: (_change: unknown, done: (outcome: unknown) => void) => {
      world.proposed += 1;
      done({ kind: 'refused', reason: 'notLeader' });
    },
  } as never;
  const pause = async (): Promise<void> => {
    world.pauses += 1;
    if (fate === 'committed') world.committedConfIndex = world.confIndex;
    if (fate === 'rolled back') Object.assign(world, { conf: conf(before), confIndex: 3 });
  };
  const changes = new ConfigurationChanges(driver, { pause });
  const standbys = { report: () => undefined, servingEnded: async () => undefined };
  const log = { warn: () => undefined } as never;
  const operator = new MemberOperations({ driver, changes, standbys, transport: { unconnected: [] }, log });
  return { world, changes, operator };
}

const codeOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'done',
    (error: unknown) => (error instanceof StoreError ? error.code : String(error)),
  );

describe('a configuration that is not committed', () => {
  it('is no reason to answer that a member is removed: the answer waits until the removal is committed', async () => {
    const { world, operator } = withPendingRemoval('committed');
    expect(await codeOf(operator.remove('n3'))).to.equal('done');
    expect(world).to.include({ pauses: 1, proposed: 0 });
  });

  it('may be rolled back: then the repeated removal is a removal again, which only the leader makes', async () => {
    const { world, operator } = withPendingRemoval('rolled back');
    expect(await codeOf(operator.remove('n3'))).to.equal('not_leader');
    expect(world.proposed).to.equal(1);
  });

  it('lets nobody decide that nothing is to be done', async () => {
    const { changes, world } = withPendingRemoval('open');
    expect(await codeOf(changes.make(() => undefined))).to.equal('busy');
    expect(world.proposed).to.equal(0);
  });
});
