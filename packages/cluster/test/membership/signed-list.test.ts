import { expect } from 'chai';
import fc from 'fast-check';
import { type ClusterAuthority, makeAuthority } from '../../src/membership/authority.ts';
import { type CommittedMembers, noCommittedMembers } from '../../src/membership/membership.ts';
import { judgeList, ListRefused, openList, signList } from '../../src/membership/signed-list.ts';
import { clusterId } from '../credentials.ts';
import { certificateOf, membersOf, trusted } from './members.ts';

describe('a signed membership list', () => {
  let authority: ClusterAuthority;
  before(async () => {
    authority = await makeAuthority(clusterId, new Date());
  });

  it('is read again as it was signed', () => {
    const { signed, ...list } = signList(authority, { clusterId, index: 9, members: membersOf([1, 2]) });
    expect(openList(JSON.parse(JSON.stringify(signed)), trusted(authority))).to.deep.equal({ ...list, signed });
  });

  it('is refused when a character was changed, or another authority signed it', async () => {
    const { signed } = signList(authority, { clusterId, index: 9, members: membersOf([1, 2]) });
    const stranger = await makeAuthority(clusterId, new Date());
    expect(() => openList(signed, trusted(stranger))).to.throw(ListRefused, 'not signed');
    expect(() => openList(signed, []), 'no authority is trusted').to.throw(ListRefused, 'not signed');
    expect(openList(signed, trusted(stranger, authority)).index, 'two are trusted').to.equal(9);
    fc.assert(
      fc.property(fc.nat(signed.text.length - 1), fc.nat(94), (at, character) => {
        const text = `${signed.text.slice(0, at)}${String.fromCharCode(32 + character)}${signed.text.slice(at + 1)}`;
        if (text !== signed.text) expect(() => openList({ ...signed, text }, trusted(authority))).to.throw(ListRefused);
      }),
    );
  });

  it('is not signed if it is too long to be read', () => {
    const ids = Array.from({ length: 250 }, (_, at) => at + 1);
    const members = membersOf(ids).map((member) => ({ ...member, apiAddress: `${member.apiAddress}/${'a'.repeat(150)}` }));
    const signed = (count: number) => signList(authority, { clusterId, index: 9, members: members.slice(0, count) }).signed;
    const most = members.findIndex((_, at) => refuses(() => signed(at + 1)));
    expect(most).to.be.within(100, 249);
    expect(signed(most).text.length).to.be.within(56_000, 56 * 1024);
    expect(openList(signed(most), trusted(authority)).members).to.have.length(most);
    expect(() => signed(most + 1)).to.throw(ListRefused, 'at most 57344');
  });

  for (const { what, shown } of [
    { what: 'nothing', shown: undefined },
    { what: 'an object without a text', shown: { signature: 'AAAA' } },
    { what: 'a text that is too long', shown: { text: 'a'.repeat(60_000), signature: 'AAAA' } },
    { what: 'a text with an empty signature', shown: { text: 'transitd membership list 1\n{}', signature: '' } },
  ])
    it(`does not open ${what}`, () => expect(() => openList(shown, trusted(authority))).to.throw(ListRefused));

  describe('gets the verdict', () => {
    const newest = { index: 20, members: membersOf([1, 2, 3]) };
    const committed = { index: 10, members: membersOf([1, 2]) };
    const context = { clusterId, newest, committed, caller: { id: 2, certificate: certificateOf(2) } };
    for (const { what, list, caller = context.caller, verdict } of [
      { what: 'a list with a higher index', list: { index: 21, members: membersOf([2, 4]) }, verdict: 'take' },
      { what: 'the same list', list: newest, verdict: 'known' },
      { what: 'the same list in another order', list: { index: 20, members: membersOf([3, 1, 2]) }, verdict: 'known' },
      { what: 'a list with a lower index', list: { index: 19, members: membersOf([2, 4]) }, verdict: 'known' },
      {
        what: 'a list with the same index and other members',
        list: { index: 20, members: membersOf([2, 4]) },
        verdict: 'conflict',
      },
      {
        what: 'a list with the committed index and other members',
        list: { index: 10, members: membersOf([2, 4]) },
        verdict: 'conflict',
      },
      { what: 'a list of another cluster', list: { ...newest, index: 21, clusterId: 'other' }, verdict: 'foreign cluster' },
      { what: 'a list without the caller', list: { index: 21, members: membersOf([1, 4]) }, verdict: 'caller not listed' },
      {
        what: 'a list that names the caller with another certificate',
        list: { index: 21, members: membersOf([2, 4]) },
        caller: { id: 2, certificate: certificateOf(9) },
        verdict: 'caller not listed',
      },
    ])
      it(`${verdict}: ${what}`, () => expect(judgeList({ clusterId, ...list }, { ...context, caller })).to.equal(verdict));

    it('known: a first list below the committed configuration of this node; take: any other first list', () => {
      const verdictOf = (index: number, members: readonly number[]) =>
        judgeList({ clusterId, index, members: membersOf(members) }, { ...context, newest: noCommittedMembers });
      expect([9, 10, 11].map((index) => verdictOf(index, [1, 2]))).to.deep.equal(['known', 'take', 'take']);
      expect(verdictOf(1, [2, 7])).to.equal('known');
    });

    it('so that the index of the accepted list never falls, and no index has two contents', () => {
      const ids = fc.uniqueArray(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 });
      const shown = fc.record({ index: fc.integer({ min: 1, max: 12 }), ids, from: fc.integer({ min: 1, max: 6 }) });
      fc.assert(
        fc.property(fc.array(shown, { maxLength: 30 }), fc.record({ index: fc.nat(12), ids }), (lists, local) => {
          const committed = { index: local.index, members: membersOf(local.ids) };
          let newest: CommittedMembers = noCommittedMembers;
          const contents = new Map<number, string>();
          for (const { index, ids, from } of lists) {
            const list = { clusterId, index, members: membersOf(ids) };
            const verdict = judgeList(list, { clusterId, newest, committed, caller: { id: from } });
            if (verdict !== 'take') continue;
            expect(index).to.be.greaterThan(newest.index);
            expect(index).to.be.at.least(local.index);
            expect(ids).to.include(from);
            expect(contents.has(index)).to.equal(false);
            if (index === local.index) expect(ids).to.have.members(local.ids);
            contents.set(index, JSON.stringify(ids));
            newest = list;
          }
        }),
      );
    });
  });
});

function refuses(task: () => unknown): boolean {
  try {
    task();
    return false;
  } catch {
    return true;
  }
}
