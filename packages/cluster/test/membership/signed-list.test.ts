import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { type ClusterAuthority, makeAuthority } from '../../src/membership/authority.ts';
import type { NodeIdentity } from '../../src/membership/identity.ts';
import { MembershipListSync } from '../../src/membership/list-sync.ts';
import type { Member } from '../../src/membership/membership.ts';
import type { MembershipList, ToldMembers } from '../../src/membership/membership-list.ts';
import { type HeldList, judgeList, ListRefused, openList, signList } from '../../src/membership/signed-list.ts';
import { clusterId, testCluster } from '../credentials.ts';

const certificateOf = (id: NodeId): string => id.toString(16).padStart(2, '0').repeat(32);
const member = (id: NodeId): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: certificateOf(id),
  nonVoter: false,
});
const trusted = (...authorities: readonly ClusterAuthority[]): X509Certificate[] =>
  authorities.map(({ certificate }) => new X509Certificate(certificate));
const membersOf = (ids: readonly NodeId[]): readonly Member[] => ids.map(member);

describe('a signed membership list', () => {
  let authority: ClusterAuthority;
  before(async () => {
    authority = await makeAuthority(clusterId, new Date());
  });

  it('is read again as it was signed', () => {
    const { signed, ...list } = signList(authority, { clusterId, index: 9, members: membersOf([1, 2]) });
    expect(openList(JSON.parse(JSON.stringify(signed)), trusted(authority))).to.deep.equal({ ...list, signed });
  });

  it('is refused when a character of it was changed, or another authority signed it', async () => {
    const { signed } = signList(authority, { clusterId, index: 9, members: membersOf([1, 2]) });
    const stranger = await makeAuthority(clusterId, new Date());
    expect(() => openList(signed, trusted(stranger))).to.throw(ListRefused, 'not signed');
    expect(() => openList(signed, []), 'nobody is trusted').to.throw(ListRefused, 'not signed');
    expect(openList(signed, trusted(stranger, authority)).index, 'two are trusted').to.equal(9);
    fc.assert(
      fc.property(fc.nat(signed.text.length - 1), fc.nat(94), (at, character) => {
        const text = `${signed.text.slice(0, at)}${String.fromCharCode(32 + character)}${signed.text.slice(at + 1)}`;
        if (text !== signed.text) expect(() => openList({ ...signed, text }, trusted(authority))).to.throw(ListRefused);
      }),
    );
  });

  for (const { what, shown } of [
    { what: 'nothing', shown: undefined },
    { what: 'an object without a text', shown: { signature: 'AAAA' } },
    { what: 'a text that is too long', shown: { text: 'a'.repeat(60_000), signature: 'AAAA' } },
    { what: 'a signature that is none', shown: { text: 'transitd membership list 1\n{}', signature: '' } },
  ])
    it(`is not ${what}`, () => expect(() => openList(shown, trusted(authority))).to.throw(ListRefused));

  describe('is judged', () => {
    const held = { index: 20, members: membersOf([1, 2, 3]) };
    const committed = { index: 10, members: membersOf([1, 2]) };
    const context = { clusterId, held, committed, caller: { id: 2, certificate: certificateOf(2) } };
    for (const { what, list, caller = context.caller, verdict } of [
      { what: 'a higher one', list: { index: 21, members: membersOf([2, 4]) }, verdict: 'take' },
      { what: 'the same one', list: held, verdict: 'known' },
      { what: 'the same one in another order', list: { index: 20, members: membersOf([3, 1, 2]) }, verdict: 'known' },
      { what: 'a lower one', list: { index: 19, members: membersOf([2, 4]) }, verdict: 'known' },
      { what: 'the same index with other members', list: { index: 20, members: membersOf([2, 4]) }, verdict: 'conflict' },
      { what: 'the committed index with other members', list: { index: 10, members: membersOf([2, 4]) }, verdict: 'conflict' },
      { what: 'one of another cluster', list: { ...held, index: 21, clusterId: 'other' }, verdict: 'foreign cluster' },
      { what: 'one without the caller', list: { index: 21, members: membersOf([1, 4]) }, verdict: 'caller not listed' },
      {
        what: 'one that names the caller with another certificate',
        list: { index: 21, members: membersOf([2, 4]) },
        caller: { id: 2, certificate: certificateOf(9) },
        verdict: 'caller not listed',
      },
    ])
      it(`${what}: ${verdict}`, () => expect(judgeList({ clusterId, ...list }, { ...context, caller })).to.equal(verdict));

    it('so that the index of the highest list seen never falls, and its content never changes', () => {
      const ids = fc.uniqueArray(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 });
      const shown = fc.record({ index: fc.integer({ min: 1, max: 12 }), ids, from: fc.integer({ min: 1, max: 6 }) });
      fc.assert(
        fc.property(fc.array(shown, { maxLength: 30 }), fc.record({ index: fc.nat(12), ids }), (lists, local) => {
          const committed = { index: local.index, members: membersOf(local.ids) };
          let held: ToldMembers | undefined;
          const contents = new Map<number, string>();
          for (const { index, ids, from } of lists) {
            const list = { clusterId, index, members: membersOf(ids) };
            const verdict = judgeList(list, { clusterId, held, committed, caller: { id: from } });
            if (verdict !== 'take') continue;
            expect(index).to.be.greaterThan(held?.index ?? 0);
            expect(ids).to.include(from);
            expect(contents.has(index)).to.equal(false);
            if (index === local.index) expect(ids).to.have.members(local.ids);
            contents.set(index, JSON.stringify(ids));
            held = list;
          }
        }),
      );
    });
  });
});

describe('the keeper of the membership list', () => {
  let directory: string;
  let cluster: Awaited<ReturnType<typeof testCluster>>;
  let identity: NodeIdentity;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'transitd-list-'));
    cluster = await testCluster();
    identity = (await cluster.node(1)).identity;
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  function keeper({ namesOthers = true } = {}) {
    const seen = { listed: [] as number[], errors: [] as string[], conflicts: 0, changes: 0 };
    const membershipList = {
      identity,
      requireIdentity: () => identity,
      authorities: trusted(cluster.authority),
      committed: { index: 5, members: membersOf([1, 2]) },
      listed: ({ index }: ToldMembers) => seen.listed.push(index) > 0 && namesOthers,
    } as unknown as MembershipList;
    const write = (_fields: object, message: string) => seen.errors.push(message);
    const log = { info: () => undefined, warn: write, error: write } as unknown as Logger;
    const onMembers = () => void seen.changes++;
    const onConflict = () => void seen.conflicts++;
    return { seen, lists: new MembershipListSync({ directory, clusterId, membershipList, log, onMembers, onConflict }) };
  }
  const list = (index: number, ...ids: readonly NodeId[]): HeldList =>
    signList(cluster.authority, { clusterId, index, members: membersOf(ids) });

  it('stores a list before it counts, for its owner alone, and has it again after a restart', async () => {
    const { lists, seen } = keeper();
    await lists.open();
    expect(lists.held).to.equal(undefined);
    expect(await lists.shown(list(8, 1, 4).signed, { id: 4 })).to.equal('take');
    expect(seen).to.deep.include({ listed: [8], changes: 1 });
    expect(statSync(join(directory, 'membership-list.json')).mode & 0o777).to.equal(0o600);
    const later = keeper();
    await later.lists.open();
    expect(later.lists.held?.index).to.equal(8);
    expect(later.seen.listed).to.deep.equal([8]);
    expect(await later.lists.shown(list(7, 1, 5).signed, { id: 5 })).to.equal('known');
    expect(later.lists.held?.index).to.equal(8);
  });

  it('has members called again where a list names the same ones, since their certificates may differ', async () => {
    const { lists, seen } = keeper({ namesOthers: false });
    expect(await lists.shown(list(8, 1, 2).signed, { id: 2 })).to.equal('take');
    expect(seen).to.deep.include({ listed: [8], changes: 1 });
    expect(await lists.shown(list(8, 1, 2).signed, { id: 2 })).to.equal('known');
    expect(seen.changes).to.equal(1);
  });

  it('takes lists that come at once one after the other, and keeps the highest', async () => {
    const { lists } = keeper();
    await Promise.all([9, 12, 7, 11].map((index) => lists.shown(list(index, 1, 4).signed, { id: 4 })));
    expect(lists.held?.index).to.equal(12);
    const stored: unknown = JSON.parse(readFileSync(join(directory, 'membership-list.json'), 'utf8'));
    expect(openList(stored, trusted(cluster.authority)).index).to.equal(12);
  });

  it('raises an alarm for other members at an index that it knows, and keeps what it has', async () => {
    const { lists, seen } = keeper();
    await lists.shown(list(8, 1, 4).signed, { id: 4 });
    expect(await lists.shown(list(8, 1, 6).signed, { id: 6 })).to.equal('conflict');
    expect(lists.held?.members.map(({ id }) => id)).to.deep.equal([1, 4]);
    expect(seen.conflicts).to.equal(1);
    expect(seen.errors.join()).to.contain('two histories exist');
  });

  it('refuses a list that another authority signed', async () => {
    const { lists } = keeper();
    const stranger = await testCluster();
    const { signed } = signList(stranger.authority, { clusterId, index: 9, members: membersOf([1, 4]) });
    const refusal = await lists.shown(signed, { id: 4 }).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(ListRefused);
    expect(lists.held).to.equal(undefined);
  });

  it('says that a kept list cannot be used, and goes on without it', async () => {
    writeFileSync(join(directory, 'membership-list.json'), '{"text":"', { mode: 0o600 });
    const { lists, seen } = keeper();
    await lists.open();
    expect(seen.errors.join()).to.contain('membership-list.json cannot be used');
    expect(await lists.shown(list(8, 1, 4).signed, { id: 4 })).to.equal('take');
  });
});
