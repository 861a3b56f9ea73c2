import type { ConfState, NodeId } from '@transitd/raft-core';
import { expect } from 'chai';
import { demotion, findMember, promotion, removal, serverIdOf } from '../../src/maintenance/member-changes.ts';
import type { Member, Membership } from '../../src/membership/membership.ts';

const member = (id: NodeId, change: Partial<Member> = {}): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: String(id).repeat(64),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
  ...change,
});
const list = (...members: readonly Member[]): Membership => ({ members, removed: [] });
const conf = (voters: readonly NodeId[], learners: readonly NodeId[] = []): ConfState => ({
  voters,
  votersOutgoing: [],
  learners,
  learnersNext: [],
  autoLeave: false,
  context: new Uint8Array(),
});
const contact = (...ids: readonly NodeId[]) => ({ self: 1, isActive: (id: NodeId) => ids.includes(id) });
const three = list(member(1), member(2), member(3));

describe('a membership change', () => {
  it('finds a member by its id, or by its name when no member has that id', () => {
    const named = list(member(1), member(2, { name: '1' }));
    expect(findMember(named, '1')?.id).to.equal(1);
    expect(findMember(named, '2')?.id).to.equal(2);
    expect(findMember(named, 'n1')?.id).to.equal(1);
    expect(findMember(named, 'n9')).to.equal(undefined);
  });

  it('finds each member by its server id, whatever the names are', () => {
    const members = [member(1), member(2, { name: '1' }), member(3, { name: 'n1' }), member(4), member(5, { name: '5' })];
    const serverIds = members.map((one) => serverIdOf(members, one));
    expect(serverIds).to.deep.equal(['1', '2', '3', 'n4', '5']);
    expect(serverIds.map((serverId) => findMember(list(...members), serverId)?.id)).to.deep.equal([1, 2, 3, 4, 5]);
  });

  it('keeps the certificate that a removed member used last, so that the node can be told', () => {
    const renewed = list(member(1), member(2, { nextCertificate: 'f'.repeat(64) }), member(3));
    const before = removal(conf([1, 2, 3]), renewed, { id: 2, certificate: undefined, ...contact(2, 3) });
    expect(before?.membership.removed.map(({ certificate }) => certificate)).to.deep.equal(['2'.repeat(64)]);
    const after = removal(conf([1, 2, 3]), renewed, { id: 2, certificate: 'f'.repeat(64), ...contact(2, 3) });
    expect(after?.membership.removed.map(({ certificate }) => certificate)).to.deep.equal(['f'.repeat(64)]);
    expect(after?.members).to.deep.equal([{ id: 2, to: 'none' }]);
    expect(after?.membership.members.map(({ id }) => id)).to.deep.equal([1, 3]);
  });

  for (const { voters, without, active, refused } of [
    { voters: [1], without: 1, active: [], refused: /last voter/ },
    { voters: [1, 2], without: 2, active: [], refused: undefined },
    { voters: [1, 2, 3], without: 2, active: [3], refused: undefined },
    { voters: [1, 2, 3], without: 2, active: [2], refused: /of the 2 remaining voters, only 1 are reachable/ },
    { voters: [1, 2, 3, 4], without: 4, active: [2], refused: undefined },
    { voters: [1, 2, 3, 4, 5], without: 4, active: [2], refused: /of the 4 remaining voters, only 2 are reachable/ },
    { voters: [1, 2], without: 3, active: [], refused: undefined },
  ]) {
    it(`${refused ? 'refuses' : 'allows'} to take ${without} out of voters ${voters} while ${[1, ...active]} are active`, () => {
      const members = list(...[...new Set([...voters, without])].map((id) => member(id)));
      const learners = voters.includes(without) ? [] : [without];
      for (const change of [
        () => removal(conf(voters, learners), members, { id: without, certificate: undefined, ...contact(...active) }),
        () => demotion(conf(voters, learners), members, { id: without, ...contact(...active) }),
      ]) {
        if (refused !== undefined) expect(change).to.throw(refused);
        else expect(change()).not.to.equal(undefined);
      }
    });
  }

  it('demotes permanently: the membership records it, and a second demotion changes nothing', () => {
    const once = demotion(conf([1, 2, 3]), three, { id: 3, ...contact(2, 3) });
    expect(once?.members).to.deep.equal([{ id: 3, to: 'learner' }]);
    expect(once?.membership.members.find(({ id }) => id === 3)?.nonVoter).to.equal(true);
    expect(demotion(conf([1, 2], [3]), once?.membership ?? three, { id: 3, ...contact(2, 3) })).to.equal(undefined);
  });

  it('demotes a voter that is marked as non-voter, and a learner that would become a voter', () => {
    const listed = list(member(1), member(2, { nonVoter: true }));
    expect(demotion(conf([1, 2]), listed, { id: 2, ...contact(2) })?.members).to.deep.equal([{ id: 2, to: 'learner' }]);
    const learner = demotion(conf([1], [2]), list(member(1), member(2)), { id: 2, ...contact(2) });
    expect([learner?.members, learner?.membership.members[1]?.nonVoter]).to.deep.equal([[], true]);
  });

  it('promotes by the membership: a member that has caught up becomes a voter', () => {
    const listed = list(member(1), member(2, { nonVoter: true }));
    const change = promotion(listed, 2);
    expect([change?.members, change?.membership.members[1]?.nonVoter]).to.deep.equal([undefined, false]);
    expect(promotion(listed, 1)).to.equal(undefined);
  });
});
