import type { ConfState, NodeId } from '@transitd/raft-core';
import { expect } from 'chai';
import { demotion, memberCalled, promotion, removal } from '../../src/maintenance/member-changes.ts';
import type { Member, Membership } from '../../src/membership/membership.ts';

const member = (id: NodeId, change: Partial<Member> = {}): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: String(id).repeat(64),
  nonVoter: false,
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
const heard = (...ids: readonly NodeId[]) => ({ self: 1, isHeard: (id: NodeId) => ids.includes(id) });
const three = list(member(1), member(2), member(3));

describe('a change of the members', () => {
  it('names a member by its name, or by its id where no name is that', () => {
    const named = list(member(1), member(2, { name: '1' }));
    expect(memberCalled(named, '1')?.id).to.equal(2);
    expect(memberCalled(named, '2')?.id).to.equal(2);
    expect(memberCalled(named, 'n1')?.id).to.equal(1);
    expect(memberCalled(named, 'n9')).to.equal(undefined);
  });

  it('remembers a removed member under the certificate that it showed last, so that it can be told', () => {
    const renewed = list(member(1), member(2, { nextCertificate: 'f'.repeat(64) }), member(3));
    const before = removal(conf([1, 2, 3]), renewed, { id: 2, shown: undefined, ...heard(2, 3) });
    expect(before?.membership.removed.map(({ certificate }) => certificate)).to.deep.equal(['2'.repeat(64)]);
    const after = removal(conf([1, 2, 3]), renewed, { id: 2, shown: 'f'.repeat(64), ...heard(2, 3) });
    expect(after?.membership.removed.map(({ certificate }) => certificate)).to.deep.equal(['f'.repeat(64)]);
    expect(after?.members).to.deep.equal([{ id: 2, to: 'none' }]);
    expect(after?.membership.members.map(({ id }) => id)).to.deep.equal([1, 3]);
  });

  for (const { voters, without, hears, refused } of [
    { voters: [1], without: 1, hears: [], refused: /last voter/ },
    { voters: [1, 2], without: 2, hears: [], refused: undefined },
    { voters: [1, 2, 3], without: 2, hears: [3], refused: undefined },
    { voters: [1, 2, 3], without: 2, hears: [2], refused: /of the 2 voters that would be left, 1 can be heard/ },
    { voters: [1, 2, 3, 4], without: 4, hears: [2], refused: undefined },
    { voters: [1, 2, 3, 4, 5], without: 4, hears: [2], refused: /of the 4 voters that would be left, 2 can be heard/ },
    { voters: [1, 2], without: 3, hears: [], refused: undefined },
  ]) {
    it(`takes ${without} out of voters ${voters} while ${[1, ...hears]} are heard: ${refused ? 'refused' : 'done'}`, () => {
      const members = list(...[...new Set([...voters, without])].map((id) => member(id)));
      const learners = voters.includes(without) ? [] : [without];
      for (const change of [
        () => removal(conf(voters, learners), members, { id: without, shown: undefined, ...heard(...hears) }),
        () => demotion(conf(voters, learners), members, { id: without, ...heard(...hears) }),
      ]) {
        if (refused !== undefined) expect(change).to.throw(refused);
        else expect(change()).not.to.equal(undefined);
      }
    });
  }

  it('demotes for good: the list says so, and nothing changes the second time', () => {
    const once = demotion(conf([1, 2, 3]), three, { id: 3, ...heard(2, 3) });
    expect(once?.members).to.deep.equal([{ id: 3, to: 'learner' }]);
    expect(once?.membership.members.find(({ id }) => id === 3)?.nonVoter).to.equal(true);
    expect(demotion(conf([1, 2], [3]), once?.membership ?? three, { id: 3, ...heard(2, 3) })).to.equal(undefined);
  });

  it('demotes a voter that was to be none already, and a learner that was to vote', () => {
    const listed = list(member(1), member(2, { nonVoter: true }));
    expect(demotion(conf([1, 2]), listed, { id: 2, ...heard(2) })?.members).to.deep.equal([{ id: 2, to: 'learner' }]);
    const learner = demotion(conf([1], [2]), list(member(1), member(2)), { id: 2, ...heard(2) });
    expect([learner?.members, learner?.membership.members[1]?.nonVoter]).to.deep.equal([[], true]);
  });

  it('promotes by what the list says: whoever keeps up becomes a voter', () => {
    const listed = list(member(1), member(2, { nonVoter: true }));
    const change = promotion(listed, 2);
    expect([change?.members, change?.membership.members[1]?.nonVoter]).to.deep.equal([undefined, false]);
    expect(promotion(listed, 1)).to.equal(undefined);
  });
});
