import type { Node } from '@transitd/node';
import { expect } from 'chai';
import { type Served, served } from '../served.ts';

const id = '0a'.repeat(16);

describe('a cluster of a replication set', () => {
  let api: Served;
  before(async () => {
    api = await served();
  });
  after(() => api.close());

  /** Gives the node these facts of replication. */
  const withFacts = (facts: Partial<Node['eligibility']>): void => {
    api.node.eligibility = { ...api.node.eligibility, ...facts } as Node['eligibility'];
  };
  const statusOf = async (path: string) => (await api.ask(`GET ${path}`, { token: null })).body.data;

  it('reports without a token that no replication is in use', async () => {
    expect(await statusOf('sys/replication/status')).to.deep.equal({
      dr: { mode: 'disabled' },
      performance: { mode: 'disabled' },
    });
    expect(await statusOf('sys/replication/dr/status')).to.deep.equal({ mode: 'disabled' });
  });

  it('reports its mode, position and digest', async () => {
    const known = { mode: 'primary', role: 'primary', set: id, epoch: 3, position: 17, digest: 255n } as const;
    withFacts({ replicationStatus: known });
    expect(await statusOf('sys/replication/dr/status')).to.deep.equal({
      ...{ mode: 'primary', state: 'primary', cluster_id: id, epoch: 3, last_wal: 17, last_dr_wal: 17 },
      merkle_root: 'ff'.padStart(64, '0'),
    });
    withFacts({ replicationStatus: { ...known, mode: 'bootstrapping', role: 'secondary', epoch: undefined, digest: undefined } });
    expect((await statusOf('sys/replication/status')).dr).to.deep.equal({
      ...{ mode: 'bootstrapping', state: 'secondary', cluster_id: id, last_remote_wal: 17 },
    });
    withFacts({ replicationStatus: undefined });
  });

  it('shows on the active node the secondaries with their lag, and the primary', async () => {
    const known = { mode: 'primary', role: 'primary', set: id, epoch: 3, position: 17, digest: undefined } as const;
    const replication = {
      ...{ fence: {}, diverged: {} },
      secondaries: [
        { secondary: 'west', isConnected: true, acknowledged: 15, lag: { entries: 2, ms: 7.6 }, silentMs: 3 },
        { secondary: 'north', isConnected: false },
      ],
      primary: {
        ...{ secondary: 'west', addresses: ['10.0.0.1:8201'], address: '10.0.0.1:8201', connection: 'stopped' },
        ...{ lag: { entries: 4, ms: undefined }, silentMs: undefined, reason: 'refused', stopped: 'digest_differs' },
      },
      fence: { status: { state: 'off' } },
      diverged: { newest: undefined },
      material: { setting: { last: { timeoutMs: 5_000, onTimeout: 'refuse' } } },
      reports: {
        promotion: () => ({
          ...{
            id,
            utcMs: 1_000,
            isForced: true,
            position: 16,
            lossless: false,
            missing: 2,
            missesRestore: true,
            primaryPosition: 18,
          },
          ...{ lag: { entries: 2, ms: 7.6 }, silentMs: 3.2 },
        }),
        divergence: {
          ...{ node: 'n1', archive: 'epoch.snap', utcMs: 2_000, point: 9, position: 12, written: 3, deleted: 2 },
          ...{ keyVersions: 1, tokens: 2, revokedTokens: 1 },
        },
      },
    };
    Object.assign(api.node, { active: true, member: { replication, peers: {} } });
    const replicationState = { epochs: [] } as unknown as NonNullable<Node['eligibility']['replication']>;
    withFacts({ replicationStatus: known, replication: replicationState });
    const primary = await statusOf('sys/replication/dr/status');
    expect(primary.acknowledge).to.deep.equal({ mode: 'key_material', timeout_ms: 5_000, on_timeout: 'refuse' });
    expect(primary.promotion).to.deep.equal({
      ...{
        time: '1970-01-01T00:00:01.000Z',
        force: true,
        position: 16,
        lossless: false,
        missing: 2,
        misses_restore: true,
        primary_position: 18,
      },
      ...{ lag_entries: 2, lag_ms: 8, last_contact_ms: 3 },
    });
    expect(primary.divergence).to.deep.equal({
      ...{ node_id: 'n1', snapshot: 'epoch.snap', time: '1970-01-01T00:00:02.000Z', point: 9, position: 12 },
    });
    expect((await api.ask('GET sys/replication/dr/divergence', { token: '' })).status, 'the counts need a token').to.equal(403);
    expect((await api.ask('GET sys/replication/dr/divergence')).body.data).to.deep.equal({
      ...primary.divergence,
      ...{ written: 3, deleted: 2, key_versions: 1, tokens: 2, revoked_tokens: 1 },
    });
    const [{ last_heartbeat: heard, ...west }, ...others] = primary.secondaries;
    expect(Date.parse(heard)).to.be.at.most(Date.now());
    expect(primary.known_secondaries).to.deep.equal(['west', 'north']);
    expect([west, ...others]).to.deep.equal([
      {
        ...{ node_id: 'west', connection_status: 'connected', last_wal: 15, lag_entries: 2, lag_ms: 8 },
        last_heartbeat_duration_ms: 3,
      },
      { node_id: 'north', connection_status: 'disconnected' },
    ]);
    withFacts({ replicationStatus: { ...known, mode: 'secondary', role: 'secondary' } });
    expect(await statusOf('sys/replication/dr/status')).to.deep.include({
      ...{ secondary_id: 'west', connection_status: 'stopped', stop_reason: 'digest_differs', lag_entries: 4 },
      known_primary_cluster_addrs: ['10.0.0.1:8201'],
      primaries: [{ cluster_address: '10.0.0.1:8201', connection_status: 'stopped' }],
    });
    Object.assign(api.node, { active: false, member: { peers: {} } });
    withFacts({ replicationStatus: undefined });
  });

  it('refuses as a secondary everything but a few paths, with one error', async () => {
    withFacts({ isSecondary: true });
    const refusals = ['GET transit/keys/k', 'POST transit/encrypt/k', 'GET sys/policies/acl/default', 'POST auth/token/create'];
    for (const line of [...refusals, 'POST sys/wrapping/unwrap', 'POST auth/userpass/login/u', 'GET sys/nodes']) {
      const { status, body } = await api.ask(line, line.startsWith('POST') ? { body: {} } : {});
      expect([status, body.errors], line).to.deep.equal([
        400,
        ['path disabled in replication DR secondary mode: ask the primary cluster'],
      ]);
    }
    for (const line of ['GET sys/metrics', 'GET sys/seal-status', 'GET sys/init', 'GET sys/replication/status'])
      expect((await api.ask(line)).status, line).to.equal(200);
    const supported = { oldest: 1, newest: 2 };
    const status = { level: 1, highest: 2, supported, members: [], waitsFor: [] };
    const featureLevel = { status, raise: () => Promise.resolve(2) };
    const cluster = {
      rotation: { status: { phase: 'none', waitsFor: [] }, begin: () => Promise.resolve() },
      signingAuthority: () => Promise.resolve(undefined),
    };
    const done = () => Promise.resolve();
    const requireMember = () => ({ kind: 'raft', featureLevel, cluster });
    Object.assign(api.node, { requireMember, stepDown: done, seal: done });
    // Of its own nodes. The level must be raised before that of the primary.
    const own = ['GET sys/feature-level', 'POST sys/feature-level/raise', 'POST sys/step-down', 'POST sys/seal'];
    for (const line of [...own, 'GET sys/storage/raft/authority', 'POST sys/storage/raft/authority/rotate'])
      expect((await api.ask(line)).status, line).to.be.oneOf([200, 204]);
    withFacts({ isSecondary: false });
    expect((await api.ask('GET sys/policies/acl/default')).status).to.equal(200);
  });
});
