// @live
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@transitd/process';
import type { ConfState } from '@transitd/raft-core';
import { expect } from 'chai';
import { Renewal, renewalHandler } from '../../src/maintenance/renewal.ts';
import { type ClusterAuthority, makeAuthority, makeRequest, signRequest } from '../../src/membership/authority.ts';
import { fingerprintOf } from '../../src/membership/certificate.ts';
import { type NodeIdentity, readIdentity, writeIdentity } from '../../src/membership/identity.ts';
import { certificateShown, listedNode, type Member, type Membership } from '../../src/membership/membership.ts';
import { ClusterCallError, ClusterClient } from '../../src/transport/cluster-client.ts';
import { ClusterListener } from '../../src/transport/cluster-listener.ts';
import { clusterId } from '../join/join-fixtures.ts';

const dayMs = 24 * 3_600_000;
const shown = ({ certificate }: Pick<NodeIdentity, 'certificate'>): string => fingerprintOf(new X509Certificate(certificate));

/** Makes an identity whose certificate was signed `daysAgo`; certificates are valid for a year. */
async function identityOf(authority: ClusterAuthority, nodeId: number, daysAgo: number): Promise<NodeIdentity> {
  const { key, request } = await makeRequest(nodeId);
  const now = new Date(Date.now() - daysAgo * dayMs);
  const certificate = await signRequest(authority, { clusterId, nodeId, request, now });
  return { key, certificate, authority: authority.certificate, membersAtJoin: [] };
}

const trusted = ({ authority }: NodeIdentity): X509Certificate[] => [new X509Certificate(authority)];

/** The list of a node with this identity, before the first rotation. */
const knows = (identity: () => NodeIdentity) => ({
  get identity() {
    return identity();
  },
  get authorities() {
    return trusted(identity());
  },
  committedAuthority: undefined,
});

const member = (id: number): Member => ({
  id,
  name: `n${id}`,
  apiAddress: 'http://127.0.0.1:1',
  clusterAddress: '127.0.0.1:1',
  certificate: String(id).repeat(64),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
});

/** Node 1 leads; node 2 has a certificate of this age. Both listen and share one membership. */
async function pair(daysAgo: number) {
  const authority = await makeAuthority(clusterId, new Date());
  const identities = [await identityOf(authority, 1, 0), await identityOf(authority, 2, daysAgo)] as const;
  const clock = { nowMs: Date.now() };
  const state = { identity: identities[1], membership: { members: [], removed: [] } as Membership };
  const renew = renewalHandler({
    role: { isActive: true },
    authority: { clusterId, readOrMake: async () => authority },
    changes: {
      make: async (decide) => {
        const change = decide({} as ConfState, state.membership);
        state.membership = change?.membership ?? state.membership;
        return change;
      },
    },
    clock: { nowMs: () => clock.nowMs, utcMs: () => Date.now() },
  });
  const listenerOf = (identity: () => NodeIdentity) =>
    new ClusterListener({
      members: {
        requireIdentity: identity,
        memberState: (fingerprint) => listedNode(state.membership, fingerprint),
      },
      calls: {
        'POST /cluster/renew': renew,
        'POST /cluster/whoami': async ({ certificate }) => ({ status: 200, json: { certificate } }),
      },
      forwarded: { handle: (_req, res) => void res.destroy() },
      raft: { accept: (socket) => socket.terminate(), judge: () => 'in order' },
      onFault: (error) => {
        throw error;
      },
    });
  const leader = listenerOf(() => identities[0]);
  const standby = listenerOf(() => state.identity);
  const ports = [await leader.listen({ host: '127.0.0.1', port: 0 }), await standby.listen({ host: '127.0.0.1', port: 0 })];
  const members = identities.map(
    (identity, i): Member => ({
      ...member(i + 1),
      clusterAddress: `127.0.0.1:${ports[i]}`,
      certificate: shown(identity),
    }),
  );
  state.membership = { members, removed: [] };
  const clientOf = (identity: () => NodeIdentity) =>
    new ClusterClient({
      members: {
        requireIdentity: identity,
        member: (id) => state.membership.members.find((one) => one.id === id),
      },
      incarnation: { number: 1, nonce: 'a'.repeat(32) },
    });
  const toLeader = clientOf(() => state.identity);
  const toStandby = clientOf(() => identities[0]);
  const folder = mkdtempSync(join(tmpdir(), 'transitd-renewal-'));
  const losing = { answers: 0 };
  const renewal = new Renewal({
    client: {
      post: async (...call) => {
        const answer = await toLeader.post(...call);
        losing.answers -= 1;
        if (losing.answers >= 0) throw new Error('the answer was lost');
        return answer;
      },
    },
    membershipList: knows(() => state.identity),
    leader: { present: { id: 1 } },
    port: {
      useIdentity: async (identity) => {
        await writeIdentity(folder, identity);
        state.identity = identity;
        standby.recheck();
      },
    },
    clock: { utcMs: () => clock.nowMs },
  });
  open.push(async () => {
    toLeader.close();
    toStandby.close();
    await leader.close();
    await standby.close();
    rmSync(folder, { recursive: true });
  });
  /** Returns the certificate of node 2 that the leader sees on a call. */
  const seen = async (): Promise<unknown> => (await toLeader.post(1, '/cluster/whoami', { json: {}, timeoutMs: 60_000 })).json;
  /** Calls node 2 from the leader, which accepts only a certificate that the membership names for node 2. */
  const answers = async (): Promise<number> =>
    (await toStandby.post(2, '/cluster/whoami', { json: {}, timeoutMs: 60_000 })).status;
  return { state, renewal, clock, losing, folder, seen, answers };
}

const open: (() => Promise<void>)[] = [];

const failureOf = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('the active node', () => {
  it('signs for each node at most five certificates at once, then one in ten seconds', async () => {
    const authority = await makeAuthority(clusterId, new Date());
    const clock = { nowMs: 0 };
    const signed: number[] = [];
    const renew = renewalHandler({
      role: { isActive: true },
      authority: { clusterId, readOrMake: async () => authority },
      changes: {
        make: async (decide) => {
          const before = { members: [member(2), member(3)], removed: [] };
          const change = decide({} as ConfState, before);
          const members = change?.membership.members ?? [];
          signed.push(...members.flatMap(({ id, nextCertificate }) => (nextCertificate === undefined ? [] : [id])));
          return change;
        },
      },
      clock: { nowMs: () => clock.nowMs, utcMs: () => Date.now() },
    });
    const ask = async (from: number): Promise<unknown> => {
      const body = Buffer.from(JSON.stringify({ request: (await makeRequest(from)).request }));
      const context = {
        from,
        certificate: '',
        channel: () => Buffer.of(),
        proved: () => undefined,
        query: new URLSearchParams(),
      };
      const answer = await renew({ ...context, body });
      return 'status' in answer && answer.status;
    };
    for (let i = 0; i < 5; i++) expect(await ask(2)).to.equal(200);
    expect([await ask(2), await ask(3)]).to.deep.equal([429, 200]);
    clock.nowMs = 10_000;
    expect([await ask(2), await ask(2)]).to.deep.equal([200, 429]);
    expect(signed).to.deep.equal([2, 2, 2, 2, 2, 3, 2]);
  });

  it('refuses a certificate request of more than 4,096 characters before it parses it', async () => {
    const never = (): never => expect.fail('the request was not refused');
    const renew = renewalHandler({
      ...{ role: { isActive: true }, authority: { clusterId, readOrMake: never }, changes: { make: never } },
      clock: { nowMs: () => 0, utcMs: () => Date.now() },
    });
    const context = {
      from: 2,
      certificate: '',
      channel: () => Buffer.of(),
      proved: () => undefined,
      query: new URLSearchParams(),
    };
    const body = Buffer.from(JSON.stringify({ request: 'x'.repeat(4097) }));
    expect(await failureOf(renew({ ...context, body }))).to.include({ code: 'request_refused' });
  });
});

describe('the renewal of a standby', () => {
  afterEach(async () => {
    for (const close of open.splice(0)) await close();
  });

  for (const { daysAgo, renewed } of [
    { daysAgo: 0, renewed: false },
    { daysAgo: 182, renewed: false },
    { daysAgo: 183, renewed: true },
    { daysAgo: 364, renewed: true },
    { daysAgo: 1000, renewed: true },
  ])
    it(`${renewed ? 'replaces' : 'keeps'} a certificate that is ${daysAgo} days old`, async () => {
      const { state, renewal, seen } = await pair(daysAgo);
      const before = shown(state.identity);
      expect(await seen()).to.deep.equal({ certificate: before });
      expect(await renewal.renewIfDue()).to.equal(renewed);
      expect(shown(state.identity) !== before).to.equal(renewed);
    });

  it('uses the new certificate without a restart: for calls, on its port, and on disk', async () => {
    const { state, renewal, seen, answers, folder } = await pair(300);
    expect(await answers()).to.equal(200);
    const old = state.identity;
    expect(await renewal.renewIfDue()).to.equal(true);
    expect(state.identity.key).not.to.equal(old.key);
    expect(await seen()).to.deep.equal({ certificate: shown(state.identity) });
    expect(await answers()).to.equal(200);
    expect(await readIdentity(folder)).to.deep.equal(state.identity);
    expect(await renewal.renewIfDue(), 'once more').to.equal(false);
    state.membership = certificateShown(state.membership, 2, shown(state.identity));
    expect(await answers(), 'under the new one alone').to.equal(200);
  });

  it('keeps the present certificate when the answer is lost, and gets another one later', async () => {
    const { state, renewal, seen, answers, clock, losing } = await pair(300);
    const old = shown(state.identity);
    losing.answers = 1;
    expect(await failureOf(renewal.renewIfDue())).to.be.instanceOf(Error);
    const [, listed] = state.membership.members;
    expect([listed?.certificate, listed?.nextCertificate === undefined]).to.deep.equal([old, false]);
    expect([await seen(), await answers()]).to.deep.equal([{ certificate: old }, 200]);
    expect(await renewal.renewIfDue(), 'not at once').to.equal(false);
    clock.nowMs += 60_000;
    expect(await renewal.renewIfDue()).to.equal(true);
    expect(await seen()).to.deep.equal({ certificate: shown(state.identity) });
    expect(state.membership.members[1]?.nextCertificate).to.equal(shown(state.identity));
  });

  it('accepts only a certificate for its own request', async () => {
    const authority = await makeAuthority(clusterId, new Date());
    const identity = await identityOf(authority, 2, 300);
    const stranger = await makeAuthority(clusterId, new Date());
    const became: NodeIdentity[] = [];
    for (const [what, answer] of Object.entries({
      'of another key': { status: 200, json: { certificate: (await identityOf(authority, 2, 0)).certificate } },
      'of another node': { status: 200, json: { certificate: (await identityOf(authority, 3, 0)).certificate } },
      'of another authority': { status: 200, json: { certificate: (await identityOf(stranger, 2, 0)).certificate } },
      'that is malformed': { status: 200, json: { certificate: 'none' } },
      'that is missing': { status: 200, json: undefined },
      'in a refusal': { status: 503, json: { errors: ['no'] } },
    })) {
      const renewal = new Renewal({
        client: { post: async () => answer },
        membershipList: knows(() => identity),
        leader: { present: { id: 1 } },
        port: { useIdentity: async (next) => void became.push(next) },
        clock: systemClock,
      });
      expect(await failureOf(renewal.renewIfDue()), what).to.be.instanceOf(Error);
    }
    expect(became).to.deep.equal([]);
  });

  it('accepts a certificate of the present authority, and stores that authority in its identity', async () => {
    const [old, next] = [await makeAuthority(clusterId, new Date()), await makeAuthority(clusterId, new Date())];
    let identity = await identityOf(old, 2, 0);
    const renewal = new Renewal({
      client: {
        post: async (_to, _path, { json }) => {
          const { request } = json as { request: string };
          const certificate = await signRequest(next, { clusterId, nodeId: 2, request, now: new Date() });
          return { status: 200, json: { certificate } };
        },
      },
      membershipList: {
        get identity() {
          return identity;
        },
        authorities: [old, next].map(({ certificate }) => new X509Certificate(certificate)),
        committedAuthority: next.certificate,
      },
      leader: { present: { id: 1 } },
      port: {
        useIdentity: async (renewed) => {
          identity = renewed;
        },
      },
      clock: systemClock,
    });
    expect(await renewal.renewIfDue()).to.equal(true);
    expect(trusted(identity)[0]?.fingerprint256).to.equal(new X509Certificate(next.certificate).fingerprint256);
    expect(await renewal.renewIfDue(), 'once').to.equal(false);
  });

  it('asks each authority at most once a minute, and at once after a rotation or a call that was not sent', async () => {
    const first = await makeAuthority(clusterId, new Date());
    const identity = await identityOf(first, 2, 0);
    const state = { nowMs: Date.now(), signing: (await makeAuthority(clusterId, new Date())).certificate, calls: 0 };
    let failure: Error = new Error('the answer is lost');
    const renewal = new Renewal({
      client: {
        post: async () => {
          state.calls += 1;
          throw failure;
        },
      },
      membershipList: {
        identity,
        authorities: trusted(identity),
        get committedAuthority() {
          return state.signing;
        },
      },
      leader: { present: { id: 1 } },
      port: { useIdentity: () => Promise.reject(new Error('nothing changes')) },
      clock: { utcMs: () => state.nowMs },
    });
    const callsAfter = async (passedMs: number): Promise<number> => {
      state.nowMs += passedMs;
      await renewal.renewIfDue().catch(() => undefined);
      return state.calls;
    };
    expect([await callsAfter(0), await callsAfter(59_999), await callsAfter(1)]).to.deep.equal([1, 1, 2]);
    state.signing = (await makeAuthority(clusterId, new Date())).certificate;
    expect([await callsAfter(0), await callsAfter(0), await callsAfter(60_000)]).to.deep.equal([3, 3, 4]);
    failure = new ClusterCallError('not_sent', 'the leader has just died');
    expect([await callsAfter(60_000), await callsAfter(0)], 'nothing was sent').to.deep.equal([5, 6]);
  });

  it('does nothing while no other node leads', async () => {
    const authority = await makeAuthority(clusterId, new Date());
    const identity = await identityOf(authority, 2, 300);
    const renewal = new Renewal({
      client: { post: () => Promise.reject(new Error('no node is called')) },
      membershipList: knows(() => identity),
      leader: { present: undefined },
      port: { useIdentity: () => Promise.reject(new Error('nothing changes')) },
      clock: systemClock,
    });
    expect(await renewal.renewIfDue()).to.equal(false);
  });
});
