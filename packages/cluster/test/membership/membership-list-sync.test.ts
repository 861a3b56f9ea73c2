import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, noObserver } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { expect } from 'chai';
import type { NodeIdentity } from '../../src/membership/identity.ts';
import type { CommittedMembers } from '../../src/membership/membership.ts';
import type { MembershipList } from '../../src/membership/membership-list.ts';
import { MembershipListSync } from '../../src/membership/membership-list-sync.ts';
import { ListRefused, openList, signList, type VerifiedList } from '../../src/membership/signed-list.ts';
import { MemberEvents } from '../../src/ports/member-events.ts';
import { clusterId, testCluster } from '../credentials.ts';
import { membersOf, trusted } from './members.ts';

describe('MembershipListSync', () => {
  let directory: string;
  let cluster: Awaited<ReturnType<typeof testCluster>>;
  let identity: NodeIdentity;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'transitd-list-'));
    cluster = await testCluster();
    identity = (await cluster.node(1)).identity;
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  function listSync({ namesOthers = true } = {}) {
    const seen = { used: [] as number[], errors: [] as string[], conflicts: 0, changes: 0 };
    const membershipList = {
      identity,
      requireIdentity: () => identity,
      authorities: trusted(cluster.authority),
      committed: { index: 5, members: membersOf([1, 2]) },
      useSignedList: ({ index }: CommittedMembers) => seen.used.push(index) > 0 && namesOthers,
    } as unknown as MembershipList;
    const write = (_fields: object, message: string) => seen.errors.push(message);
    const log = { info: () => undefined, warn: write, error: write } as unknown as Logger;
    const events = new MemberEvents();
    events.on('members', () => void seen.changes++);
    const observer = { ...noObserver, membershipConflict: () => void seen.conflicts++ };
    return { seen, lists: new MembershipListSync({ directory, log, events, observer }, membershipList, clusterId) };
  }
  const list = (index: number, ...ids: readonly NodeId[]): VerifiedList =>
    signList(cluster.authority, { clusterId, index, members: membersOf(ids) });

  it('stores a list before using it, readable by its owner only, and has it after a restart', async () => {
    const { lists, seen } = listSync();
    await lists.open();
    expect(lists.newest).to.equal(undefined);
    expect(await lists.receive(list(8, 1, 4).signed, { id: 4 })).to.equal('take');
    expect(seen).to.deep.include({ used: [8], changes: 1 });
    expect(statSync(join(directory, 'membership-list.json')).mode & 0o777).to.equal(0o600);
    const later = listSync();
    await later.lists.open();
    expect(later.lists.newest?.index).to.equal(8);
    expect(later.seen.used).to.deep.equal([8]);
    expect(await later.lists.receive(list(7, 1, 5).signed, { id: 5 })).to.equal('known');
    expect(later.lists.newest?.index).to.equal(8);
  });

  it('reconnects even if a list names the same members, since their certificates may have changed', async () => {
    const { lists, seen } = listSync({ namesOthers: false });
    expect(await lists.receive(list(8, 1, 2).signed, { id: 2 })).to.equal('take');
    expect(seen).to.deep.include({ used: [8], changes: 1 });
    expect(await lists.receive(list(8, 1, 2).signed, { id: 2 })).to.equal('known');
    expect(seen.changes).to.equal(1);
  });

  it('handles concurrent lists one after the other, and keeps the newest', async () => {
    const { lists } = listSync();
    await Promise.all([9, 12, 7, 11].map((index) => lists.receive(list(index, 1, 4).signed, { id: 4 })));
    expect(lists.newest?.index).to.equal(12);
    const stored: unknown = JSON.parse(readFileSync(join(directory, 'membership-list.json'), 'utf8'));
    expect(openList(stored, trusted(cluster.authority)).index).to.equal(12);
  });

  it('reports a conflict for other members at a known index, and keeps its own list', async () => {
    const { lists, seen } = listSync();
    await lists.receive(list(8, 1, 4).signed, { id: 4 });
    expect(await lists.receive(list(8, 1, 6).signed, { id: 6 })).to.equal('conflict');
    expect(lists.newest?.members.map(({ id }) => id)).to.deep.equal([1, 4]);
    expect(seen.conflicts).to.equal(1);
    expect(seen.errors.join()).to.contain('two histories exist');
  });

  it('refuses a list that another authority signed', async () => {
    const { lists } = listSync();
    const stranger = await testCluster();
    const { signed } = signList(stranger.authority, { clusterId, index: 9, members: membersOf([1, 4]) });
    const refusal = await lists.receive(signed, { id: 4 }).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(ListRefused);
    expect(lists.newest).to.equal(undefined);
  });

  it('logs that a stored list cannot be used, and continues without it', async () => {
    writeFileSync(join(directory, 'membership-list.json'), '{"text":"', { mode: 0o600 });
    const { lists, seen } = listSync();
    await lists.open();
    expect(seen.errors.join()).to.contain('membership-list.json cannot be used');
    expect(await lists.receive(list(8, 1, 4).signed, { id: 4 })).to.equal('take');
  });
});
