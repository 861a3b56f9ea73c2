import type { Logger } from '@transitd/process';
import type { ConfState, NodeId } from '@transitd/raft-core';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { AuthorityRotation } from '../../src/maintenance/authority-rotation.ts';
import { listCertificate } from '../../src/maintenance/member-entries.ts';
import { authorityOf } from '../../src/maintenance/signing-authority.ts';
import { makeAuthority, nextAuthorityPath, readAuthority } from '../../src/membership/authority.ts';
import type { ConfigurationChanges, Decision, MemberChange } from '../../src/membership/configuration-changes.ts';
import {
  certificateShown,
  certificateSigned,
  decodeMembership,
  encodeMembership,
  type Membership,
} from '../../src/membership/membership.ts';
import type { StandbyReport } from '../../src/standbys/standbys.ts';
import { clusterId } from '../credentials.ts';

const fingerprint = (id: NodeId, generation = 0): string => `${id}${generation}`.repeat(32);
const failureOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => 'done',
    (error: Error) => error.message,
  );

/** The replicated state, which every node that becomes active finds. */
function replicated() {
  const members = [1, 2].map((id) => ({
    id,
    name: `n${id}`,
    apiAddress: `http://10.0.0.${id}:8200`,
    clusterAddress: `10.0.0.${id}:8201`,
    certificate: fingerprint(id),
    nonVoter: false,
    levels: { oldest: 1, newest: 1 },
  }));
  const state = { index: 5, membership: { members, removed: [] } as Membership };
  const store = memoryStore();
  /** Whether the next configuration changes fail, as after a loss of leadership. */
  const failing = { changes: false };
  const match = new Map<NodeId, number>();
  const heard = new Set<NodeId>([2]);
  const consensus = () => {
    const conf = { context: encodeMembership(state.membership) } as ConfState;
    return { conf, confIndex: state.index, committedConf: conf, committedConfIndex: state.index, stableIndex: state.index };
  };
  const make = async (decide: Decision): Promise<MemberChange | undefined> => {
    const { conf } = consensus();
    const change = decide(conf, decodeMembership(conf.context));
    if (change === undefined) return undefined;
    if (failing.changes) throw new Error('leadership was lost');
    state.membership = change.membership;
    state.index += 1;
    return change;
  };
  const changes = { make } as unknown as ConfigurationChanges;
  const active = (through: Store = store): AuthorityRotation =>
    new AuthorityRotation({
      driver: {
        status: () => ({ nodeId: 1 }),
        consensus,
        peers: () => [...match].map(([id, index]) => ({ id, match: index })),
      } as never,
      changes,
      store: through,
      clusterId,
      standbys: { report: (id) => (heard.has(id) ? ({} as StandbyReport & { readonly agoMs: number }) : undefined) },
      log: { warn: () => undefined, error: () => undefined } as unknown as Logger,
    });
  const renew = (id: NodeId): void => {
    const next = certificateSigned(state.membership, id, fingerprint(id, 1));
    state.membership = certificateShown(next, id, fingerprint(id, 1));
  };
  const signing = () => authorityOf(store, clusterId, state.membership.authorities?.current);
  return { state, store, failing, match, heard, changes, active, renew, signing };
}

describe('the active node that rotates the authority', () => {
  it('goes through all phases with the signing key always stored, whichever node is active in each phase', async () => {
    const { state, store, match, active, renew, signing } = replicated();
    const before = await signing();
    await active().begin();
    expect(active().status).to.deep.equal({ phase: 'announced', current: before.certificate, waitsFor: ['n2'] });
    await active().advance();
    expect(active().status.phase, 'node 2 does not hold it yet').to.equal('announced');
    expect(await signing()).to.deep.equal(before);
    match.set(2, state.index);
    await active().advance();
    expect(active().status).to.deep.include({ phase: 'switched', waitsFor: ['n1', 'n2'] });
    const after = await signing();
    expect(after.certificate).to.not.equal(before.certificate);
    expect(await readAuthority(store), 'the old key is gone').to.deep.equal(after);
    expect(await store.get(nextAuthorityPath)).to.equal(undefined);
    renew(1);
    await active().advance();
    expect(active().status).to.deep.include({ phase: 'switched', waitsFor: ['n2'] });
    renew(2);
    await active().advance();
    expect(active().status).to.deep.equal({ phase: 'none', current: after.certificate, waitsFor: [] });
    await active().begin();
    expect(active().status.phase, 'once more').to.equal('announced');
  });

  it('finds the new key when it stopped before the new key replaced the old one', async () => {
    const { state, store, match, active, signing } = replicated();
    await active().begin();
    match.set(2, state.index);
    const noWrites = { get: store.get.bind(store), commit: () => Promise.reject(new Error('stopped')) } as unknown as Store;
    expect(await failureOf(active(noWrites).advance())).to.equal('stopped');
    const announced = await readAuthority(store, nextAuthorityPath);
    expect(active().status.phase).to.equal('switched');
    expect(await signing()).to.deep.equal(announced);
    await active().advance();
    expect(await readAuthority(store)).to.deep.equal(announced);
  });

  it('begins again with another key when the announcement failed', async () => {
    const { failing, store, active, signing } = replicated();
    const before = await signing();
    failing.changes = true;
    expect(await failureOf(active().begin())).to.equal('leadership was lost');
    const unused = await readAuthority(store, nextAuthorityPath);
    expect([active().status.phase, await signing()]).to.deep.equal(['none', before]);
    failing.changes = false;
    await active().begin();
    expect(await readAuthority(store, nextAuthorityPath)).to.not.deep.equal(unused);
  });

  it('overwrites no key that another active node has written in the meantime', async () => {
    const { state, store, active, signing } = replicated();
    await signing();
    let other: Promise<void> | undefined;
    const slow = {
      get: store.get.bind(store),
      commit: async (transaction: Parameters<Store['commit']>[0]) => {
        other ??= active().begin();
        await other;
        return store.commit(transaction);
      },
    } as unknown as Store;
    expect(await failureOf(active(slow).begin())).to.match(/has changed its records in the meantime/);
    const named = decodeMembership(encodeMembership(state.membership)).authorities?.next;
    expect((await readAuthority(store, nextAuthorityPath))?.certificate).to.equal(named);
    expect(active().status.phase).to.equal('announced');
  });

  it('withdraws an announcement whose key a restore made unreadable, and can begin again', async () => {
    const { state, store, match, active, signing } = replicated();
    const before = await signing();
    await active().begin();
    match.set(2, state.index);
    await store.commit({ conditions: [], writes: [{ path: nextAuthorityPath, value: Buffer.from('unreadable') }] });
    const barrier = {
      get: async (path: string) => {
        const record = await store.get(path);
        if (record !== undefined && Buffer.from(record.value).toString() === 'unreadable') throw new Error('unknown key');
        return record;
      },
      commit: store.commit.bind(store),
    } as unknown as Store;
    await active(barrier).advance();
    expect(active().status).to.deep.equal({ phase: 'none', current: before.certificate, waitsFor: [] });
    expect(await signing()).to.deep.equal(before);
    await active(barrier).begin();
    expect(active().status.phase).to.equal('announced');
    match.set(2, state.index);
    await active(barrier).advance();
    expect((await signing()).certificate).to.not.equal(before.certificate);
  });

  it('does not begin during another rotation, nor with members that are away', async () => {
    const { heard, active } = replicated();
    heard.clear();
    expect(await failureOf(active().begin())).to.match(/not heard from these members: n2/);
    heard.add(2);
    await active().begin();
    expect(await failureOf(active().begin())).to.match(/in progress/);
  });

  it('lists no certificate that the old authority signed while it was replaced', async () => {
    const { state, match, active, signing, changes } = replicated();
    const authority = await signing();
    await active().begin();
    await listCertificate(changes, 2, { fingerprint: fingerprint(2, 7), authority });
    match.set(2, state.index);
    await active().advance();
    const late = listCertificate(changes, 2, { fingerprint: fingerprint(2, 8), authority });
    expect(await failureOf(late)).to.match(/was rotated in the meantime/);
    const stranger = await makeAuthority(clusterId, new Date());
    expect(await failureOf(listCertificate(changes, 2, { fingerprint: fingerprint(2, 9), authority: stranger }))).to.match(
      /rotated/,
    );
  });
});
