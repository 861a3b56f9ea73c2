import type { X509Certificate } from 'node:crypto';
import type { ConfState, LogIndex, NodeId } from '@transitd/raft-core';
import { expect } from 'chai';
import { makeAuthority } from '../../src/membership/authority.ts';
import type { NodeIdentity } from '../../src/membership/identity.ts';
import { encodeMembership, type Member, type Membership, memberRemoved, noMembers } from '../../src/membership/membership.ts';
import { MembershipList } from '../../src/membership/membership-list.ts';

const certificate = (id: NodeId, generation = 0): string => `${id}${generation}`.repeat(32);
const member = (id: NodeId, change: Partial<Member> = {}): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: certificate(id),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
  ...change,
});
const list = (...ids: readonly NodeId[]): Membership => ({ members: ids.map((id) => member(id)), removed: [] });
const confOf = (membership: Membership): ConfState => ({
  voters: membership.members.map(({ id }) => id),
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
  context: membership.members.length === 0 ? new Uint8Array() : encodeMembership(membership),
});

type At = readonly [LogIndex, Membership];

/** Returns the membership list of a node whose log holds these configurations. */
function membershipListOf(self: NodeId, committed: At, inForce: At = committed, membersAtJoin: readonly Member[] = []) {
  const log = { committed, inForce };
  const driver = {
    status: () => ({ nodeId: self }),
    consensus: () => ({
      conf: confOf(log.inForce[1]),
      confIndex: log.inForce[0],
      committedConf: confOf(log.committed[1]),
      committedConfIndex: log.committed[0],
    }),
  };
  const membershipList = new MembershipList('', { membersAtJoin } as Partial<NodeIdentity> as NodeIdentity);
  membershipList.useLog({ driver });
  const moves = (to: Partial<typeof log>): void => {
    Object.assign(log, to);
    membershipList.configurationChanged();
  };
  return { membershipList, moves };
}

const known = (membershipList: MembershipList): readonly NodeId[] => membershipList.knownMembers.map(({ id }) => id).sort();

describe('the membership list', () => {
  it('keeps a member until its removal is committed, and only then reports it as removed', () => {
    const before = list(1, 2, 3);
    const after = memberRemoved(before, 3);
    const { membershipList, moves } = membershipListOf(1, [5, before], [9, after]);
    expect(known(membershipList)).to.deep.equal([1, 2, 3]);
    expect(membershipList.member(3)).to.deep.equal(member(3));
    expect(membershipList.memberState(certificate(3))).to.deep.equal({ id: 3, memberState: 'member' });
    expect(membershipList.removedAt(3)).to.equal(undefined);
    expect(membershipList.members.map(({ id }) => id)).to.deep.equal([1, 2]);
    moves({ committed: [9, after] });
    expect(known(membershipList)).to.deep.equal([1, 2]);
    expect(membershipList.member(3)).to.equal(undefined);
    expect(membershipList.memberState(certificate(3))).to.deep.equal({ id: 3, memberState: 'removed' });
    expect(membershipList.removedAt(3)).to.equal(9);
  });

  it('still reports a removed member as removed while another change is not committed', () => {
    const before = memberRemoved(list(1, 2, 3), 3);
    const { membershipList } = membershipListOf(1, [5, before], [9, { ...before, members: [...before.members, member(4)] }]);
    expect(known(membershipList)).to.deep.equal([1, 2, 4]);
    expect(membershipList.memberState(certificate(3))).to.deep.equal({ id: 3, memberState: 'removed' });
    expect(membershipList.removedAt(3)).to.equal(5);
  });

  it('uses the address in the newest list, and admits a member with each certificate that it may have', () => {
    const moved = member(2, { clusterAddress: '10.0.1.2:8201', certificate: certificate(2, 1) });
    const { membershipList } = membershipListOf(1, [5, list(1, 2)], [9, { members: [member(1), moved], removed: [] }]);
    expect(membershipList.member(2)).to.deep.equal(moved);
    expect(membershipList.knownMembers).to.deep.equal([member(1), moved]);
    for (const generation of [0, 1])
      expect(membershipList.memberState(certificate(2, generation))?.memberState).to.equal('member');
  });

  describe('reported by a known member', () => {
    const local: At = [5, list(1, 2, 3)];
    const report = { index: 20, members: [member(2), member(3), member(4)] };

    it('names the reported members too, until this node’s log catches up', () => {
      const { membershipList, moves } = membershipListOf(3, local);
      expect(membershipList.useReport(2, report)).to.equal(true);
      expect(known(membershipList)).to.deep.equal([1, 2, 3, 4]);
      expect(membershipList.memberState(certificate(4))).to.deep.equal({ id: 4, memberState: 'member' });
      expect(membershipList.committed).to.deep.equal({ index: 5, members: local[1].members });
      moves({ committed: [12, local[1]], inForce: [12, local[1]] });
      expect(known(membershipList)).to.deep.equal([1, 2, 3, 4]);
      moves({ committed: [20, list(2, 3)], inForce: [20, list(2, 3)] });
      expect(known(membershipList)).to.deep.equal([2, 3]);
      expect(membershipList.memberState(certificate(4))).to.equal(undefined);
    });

    it('forgets them when this node’s log no longer names the reporting member', () => {
      const { membershipList, moves } = membershipListOf(3, local);
      membershipList.useReport(2, report);
      moves({ committed: [12, list(1, 3)], inForce: [12, list(1, 3)] });
      expect(known(membershipList)).to.deep.equal([1, 3]);
    });

    it('takes the newer address and certificate of a known member', () => {
      const { membershipList } = membershipListOf(3, local);
      const moved = member(1, { clusterAddress: '10.0.1.1:8201', certificate: certificate(1, 1) });
      membershipList.useReport(2, { index: 20, members: [moved] });
      expect(membershipList.member(1)).to.deep.equal(moved);
    });

    for (const { what, from, index } of [
      { what: 'a node that only the report names', from: 4, index: 20 },
      { what: 'a node that this node’s log does not name', from: 9, index: 20 },
      { what: 'a member whose list is not newer', from: 2, index: 5 },
    ])
      it(`ignores a report of ${what}`, () => {
        const { membershipList } = membershipListOf(3, local);
        expect(membershipList.useReport(from, { ...report, index })).to.equal(false);
        expect(known(membershipList)).to.deep.equal([1, 2, 3]);
      });

    it('ignores a report of a member that it knows only from a report', () => {
      const { membershipList } = membershipListOf(3, local);
      membershipList.useReport(2, report);
      expect(membershipList.useReport(4, { index: 30, members: [member(5)] })).to.equal(false);
      expect(membershipList.memberState(certificate(5))).to.equal(undefined);
    });

    it('ignores an older report after a newer one', () => {
      const { membershipList } = membershipListOf(3, local);
      membershipList.useReport(2, report);
      expect(membershipList.useReport(1, { index: 19, members: [member(5)] })).to.equal(false);
      expect(known(membershipList)).to.deep.equal([1, 2, 3, 4]);
    });
  });

  it('keeps the members as of the join while its log is before the join', () => {
    const membersAtJoin = [member(2), member(3)];
    const { membershipList, moves } = membershipListOf(4, [0, noMembers], [0, noMembers], membersAtJoin);
    expect(known(membershipList)).to.deep.equal([2, 3]);
    moves({ committed: [3, list(1)], inForce: [3, list(1)] });
    expect(known(membershipList)).to.deep.equal([1, 2, 3]);
    expect(membershipList.memberState(certificate(3))).to.deep.equal({ id: 3, memberState: 'member' });
    moves({ committed: [9, list(2, 4)], inForce: [9, list(2, 4)] });
    expect(known(membershipList)).to.deep.equal([2, 4]);
  });
});

describe('the authorities that a node trusts', () => {
  let pems: readonly string[];
  before(async () => {
    pems = await Promise.all([1, 2, 3].map(async () => (await makeAuthority('0-0', new Date())).certificate));
  });
  const trustedBy = (membershipList: MembershipList): number[] =>
    membershipList.authorities
      .map((one: X509Certificate) => pems.findIndex((pem) => pem.trim() === one.toString().trim()))
      .sort();
  const identityOf = (authority: string): NodeIdentity => ({ key: '', certificate: '', authority, membersAtJoin: [] });

  function nodeWith(committed: Membership, inForce = committed): MembershipList {
    return membershipListOf(1, [5, committed], inForce === committed ? undefined : [6, inForce]).membershipList;
  }

  it('are only the authority of its identity until the log names others', async () => {
    const [local = ''] = pems;
    expect(trustedBy(new MembershipList('', identityOf(local)))).to.deep.equal([0]);
  });

  it('are those of the configuration in force and of the committed one, and no other', () => {
    const [a = '', b = '', c = ''] = pems;
    const named = (authorities: NonNullable<Membership['authorities']>): Membership => ({ ...list(1, 2), authorities });
    const announced = named({ current: a, next: b });
    const switched = named({ current: b, former: { certificate: a, fingerprints: [] } });
    const done = named({ current: b });
    expect(trustedBy(nodeWith(announced))).to.deep.equal([0, 1]);
    expect(trustedBy(nodeWith(announced, switched))).to.deep.equal([0, 1]);
    expect(trustedBy(nodeWith(switched, done)), 'the end is not committed').to.deep.equal([0, 1]);
    expect(trustedBy(nodeWith(done))).to.deep.equal([1]);
    expect(trustedBy(nodeWith(done, named({ current: b, next: c })))).to.deep.equal([1, 2]);
  });
});

describe('the nodes that may still serve', () => {
  it('include a removed node, which may not know of its removal yet', () => {
    const removed = memberRemoved(list(1, 2, 3), 3);
    const { membershipList } = membershipListOf(1, [9, removed]);
    expect(membershipList.knownMembers.map(({ id }) => id)).to.deep.equal([1, 2]);
    expect([...membershipList.possiblyServing].sort()).to.deep.equal([1, 2, 3]);
  });
});
