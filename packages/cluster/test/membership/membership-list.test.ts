import type { X509Certificate } from 'node:crypto';
import type { ConfState, LogIndex, NodeId } from '@transitd/raft-core';
import { expect } from 'chai';
import { makeAuthority } from '../../src/membership/authority.ts';
import type { NodeIdentity } from '../../src/membership/identity.ts';
import { encodeMembership, type Member, type Membership, memberRemoved } from '../../src/membership/membership.ts';
import { MembershipList } from '../../src/membership/membership-list.ts';
import type { Storage } from '../../src/ports/storage-port.ts';

const certificate = (id: NodeId, generation = 0): string => `${id}${generation}`.repeat(32);
const member = (id: NodeId, change: Partial<Member> = {}): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: certificate(id),
  nonVoter: false,
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

/** The roster of a node whose log holds these configurations. */
function rosterOf(self: NodeId, committed: At, inForce: At = committed, seeds: readonly Member[] = []) {
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
  const membershipList = new MembershipList('', { seeds } as Partial<NodeIdentity> as NodeIdentity);
  membershipList.follow({ driver } as unknown as Storage);
  const moves = (to: Partial<typeof log>): void => {
    Object.assign(log, to);
    membershipList.configured();
  };
  return { membershipList, moves };
}

const known = (membershipList: MembershipList): readonly NodeId[] => membershipList.known.map(({ id }) => id).sort();
const nobody: Membership = { members: [], removed: [] };

describe('the roster', () => {
  it('keeps a member that is being removed until that is committed, and only then calls it removed', () => {
    const before = list(1, 2, 3);
    const after = memberRemoved(before, 3);
    const { membershipList, moves } = rosterOf(1, [5, before], [9, after]);
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

  it('still calls removed who was, while another change is on its way', () => {
    const before = memberRemoved(list(1, 2, 3), 3);
    const { membershipList } = rosterOf(1, [5, before], [9, { ...before, members: [...before.members, member(4)] }]);
    expect(known(membershipList)).to.deep.equal([1, 2, 4]);
    expect(membershipList.memberState(certificate(3))).to.deep.equal({ id: 3, memberState: 'removed' });
    expect(membershipList.removedAt(3)).to.equal(5);
  });

  it('finds a member where the newest list says, and lets it in under each certificate that it may have', () => {
    const moved = member(2, { clusterAddress: '10.0.1.2:8201', certificate: certificate(2, 1) });
    const { membershipList } = rosterOf(1, [5, list(1, 2)], [9, { members: [member(1), moved], removed: [] }]);
    expect(membershipList.member(2)).to.deep.equal(moved);
    expect(membershipList.known).to.deep.equal([member(1), moved]);
    for (const generation of [0, 1])
      expect(membershipList.memberState(certificate(2, generation))?.memberState).to.equal('member');
  });

  describe('told by a member who belongs', () => {
    const local: At = [5, list(1, 2, 3)];
    const told = { index: 20, members: [member(2), member(3), member(4)] };

    it('knows those too, until the own log has come as far', () => {
      const { membershipList, moves } = rosterOf(3, local);
      expect(membershipList.told(2, told)).to.equal(true);
      expect(known(membershipList)).to.deep.equal([1, 2, 3, 4]);
      expect(membershipList.memberState(certificate(4))).to.deep.equal({ id: 4, memberState: 'member' });
      expect(membershipList.committed).to.deep.equal({ index: 5, members: local[1].members });
      moves({ committed: [12, local[1]], inForce: [12, local[1]] });
      expect(known(membershipList)).to.deep.equal([1, 2, 3, 4]);
      moves({ committed: [20, list(2, 3)], inForce: [20, list(2, 3)] });
      expect(known(membershipList)).to.deep.equal([2, 3]);
      expect(membershipList.memberState(certificate(4))).to.equal(undefined);
    });

    it('forgets them when the own log names the teller no more', () => {
      const { membershipList, moves } = rosterOf(3, local);
      membershipList.told(2, told);
      moves({ committed: [12, list(1, 3)], inForce: [12, list(1, 3)] });
      expect(known(membershipList)).to.deep.equal([1, 3]);
    });

    it('takes the newer address and certificate of one that it knows already', () => {
      const { membershipList } = rosterOf(3, local);
      const moved = member(1, { clusterAddress: '10.0.1.1:8201', certificate: certificate(1, 1) });
      membershipList.told(2, { index: 20, members: [moved] });
      expect(membershipList.member(1)).to.deep.equal(moved);
    });

    for (const { what, from, index } of [
      { what: 'a stranger', from: 4, index: 20 },
      { what: 'one that the own log does not name', from: 9, index: 20 },
      { what: 'one that knows no more than itself', from: 2, index: 5 },
    ])
      it(`does not believe ${what}`, () => {
        const { membershipList } = rosterOf(3, local);
        expect(membershipList.told(from, { ...told, index })).to.equal(false);
        expect(known(membershipList)).to.deep.equal([1, 2, 3]);
      });

    it('does not believe one that it was only told of', () => {
      const { membershipList } = rosterOf(3, local);
      membershipList.told(2, told);
      expect(membershipList.told(4, { index: 30, members: [member(5)] })).to.equal(false);
      expect(membershipList.memberState(certificate(5))).to.equal(undefined);
    });

    it('does not take an older list for the newer one', () => {
      const { membershipList } = rosterOf(3, local);
      membershipList.told(2, told);
      expect(membershipList.told(1, { index: 19, members: [member(5)] })).to.equal(false);
      expect(known(membershipList)).to.deep.equal([1, 2, 3, 4]);
    });
  });

  it('keeps whom it was told of at its join while its log tells of the time before', () => {
    const seeds = [member(2), member(3)];
    const { membershipList, moves } = rosterOf(4, [0, nobody], [0, nobody], seeds);
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
  const identityOf = (authority: string): NodeIdentity => ({ key: '', certificate: '', authority, seeds: [] });

  function nodeWith(committed: Membership, inForce = committed): MembershipList {
    return rosterOf(1, [5, committed], inForce === committed ? undefined : [6, inForce]).membershipList;
  }

  it('is the one of its identity until the log names others', async () => {
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
