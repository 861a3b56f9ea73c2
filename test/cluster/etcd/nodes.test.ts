import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type LiveEtcd, liveEtcd } from '../../../packages/storage-etcd/test/live-etcd.ts';
import { processMs } from '../../process/live-server.ts';
import { expectCode, run } from '../../process/transitd-command.ts';
import { LiveCluster } from '../harness/live-cluster.ts';
import type { LiveNode } from '../harness/live-node.ts';
import { until } from '../harness/until.ts';

const plaintext = Buffer.from('a text that etcd must not see').toString('base64');

describe('three nodes on one etcd', function () {
  this.timeout(processMs);
  let etcd: LiveEtcd;
  let cluster: LiveCluster;
  before(async () => {
    etcd = await liveEtcd();
    const storage = { type: 'etcd', endpoints: [etcd.endpoint], prefix: 'test/cluster' };
    cluster = await LiveCluster.start({ links: 'direct', config: { storage } });
  });
  after(async () => {
    await cluster?.end();
    await etcd?.stop();
  });

  /** Resolves with the active one of these nodes, once all others serve. */
  const served = async (nodes: readonly LiveNode[] = cluster.nodes): Promise<LiveNode> => {
    let codes: readonly unknown[] = [];
    return until(
      'one node is active and the others serve',
      async () => {
        const seen = await Promise.all(nodes.map((node) => node.health()));
        codes = seen.map((health) => health?.code);
        const active = nodes[codes.indexOf(200)];
        return codes.filter((code) => code === 473).length === nodes.length - 1 && active;
      },
      { explain: () => `${JSON.stringify(codes)}\n${cluster.tails()}` },
    );
  };
  const standbysOf = (active: LiveNode): readonly LiveNode[] => cluster.others(active);
  const encrypt = (node: LiveNode, key: string, token?: string) =>
    cluster.ask(node, 'POST', `transit/encrypt/${key}`, { plaintext }, token === undefined ? {} : { token });

  it('are uninitialized, until one is initialized and the others unseal themselves', async () => {
    for (const node of cluster.nodes) expect((await node.health())?.code).to.equal(501);
    await cluster.initialize(cluster.node(2));
    const active = await served();
    expect(active.name).to.equal('n2');
    expect(
      (await cluster.node(1).ask('PUT', 'sys/init', { body: { recovery_shares: 1, recovery_threshold: 1 } })).status,
    ).to.equal(400);
    for (const node of cluster.nodes) {
      const leader = await node.ask('GET', 'sys/leader');
      expect(leader.at('leader_address')).to.equal(active.apiAddress);
      expect(leader.at('is_self') === true).to.equal(node === active);
    }
  });

  it('accept writes at each node, and read them at each other', async () => {
    for (const node of cluster.nodes) {
      const created = await cluster.ask(node, 'POST', `transit/keys/of-${node.name}`);
      expect(created.status, created.text).to.equal(200);
      const index = created.headers.get('X-Service-Index') ?? '';
      for (const other of cluster.nodes) {
        const read = await cluster.ask(other, 'GET', `transit/keys/of-${node.name}`, undefined, {
          headers: { 'X-Service-Index': index },
        });
        expect(read.status, read.text).to.equal(200);
      }
      const ciphertext = (await encrypt(node, `of-${node.name}`)).string('data.ciphertext');
      for (const other of cluster.nodes) {
        const decrypted = await cluster.ask(other, 'POST', `transit/decrypt/of-${node.name}`, { ciphertext });
        expect(decrypted.string('data.plaintext')).to.equal(plaintext);
      }
    }
  });

  it('refuse a revoked token everywhere, at once', async () => {
    for (const revoker of cluster.nodes) {
      const token = (await cluster.ask(revoker, 'POST', 'auth/token/create', { policies: ['root'] })).string('auth.client_token');
      for (const node of cluster.nodes) expect((await encrypt(node, 'of-n1', token)).status).to.equal(200);
      expect((await cluster.ask(revoker, 'POST', 'auth/token/revoke', { token })).status).to.equal(204);
      for (const node of cluster.nodes) expect((await encrypt(node, 'of-n1', token)).status).to.equal(403);
    }
  });

  it('report the revisions of etcd and the active node, whichever node is asked', async () => {
    const active = await served();
    for (const node of cluster.nodes) {
      const { nodes } = JSON.parse((await cluster.ask(node, 'GET', 'sys/nodes')).text).data;
      expect(nodes.map(({ name }: { readonly name: string }) => name).toSorted()).to.deep.equal(['n1', 'n2', 'n3']);
      for (const { report } of nodes) {
        expect(report.etcd).to.include({ leader: active.name });
        expect(report.etcd.applied_index).to.be.greaterThan(0);
        expect(report).not.to.have.property('raft');
      }
    }
  });

  it('show the feature levels that each of them supports, and raise the level to the one that all support', async () => {
    const active = await served();
    for (const node of [active, standbysOf(active)[0] ?? active]) {
      const env = { TRANSITD_ADDR: node.apiAddress, TRANSITD_TOKEN: cluster.rootToken };
      const { stdout } = expectCode(await run(['operator', 'feature-level', 'status'], { env }), 0);
      const [, level = ''] = /^Level +(\d+)$/m.exec(stdout) ?? [];
      for (const { name } of cluster.nodes) expect(stdout).to.match(new RegExp(`^${name} +1 +${level}$`, 'm'));
      expect(expectCode(await run(['operator', 'feature-level', 'raise'], { env }), 0).stdout).to.match(
        new RegExp(`^Level +${level}$`, 'm'),
      );
    }
  });

  it('refuse clearly what only Raft offers', async () => {
    const active = await served();
    for (const node of [active, standbysOf(active)[0] ?? active])
      for (const [method, path, body] of [
        ['GET', 'sys/storage/raft/configuration', undefined],
        ['GET', 'sys/storage/raft/autopilot/state', undefined],
        ['POST', 'sys/storage/raft/remove-peer', { server_id: 'n1' }],
        ['POST', 'sys/storage/raft/join', { leader_api_addr: active.apiAddress }],
        ['POST', 'sys/replication/dr/primary/enable', {}],
      ] as const) {
        const answer = await cluster.ask(node, method, path, body);
        expect(answer.status, `${path}: ${answer.text}`).to.equal(400);
        expect(answer.text).to.include('the records of this cluster are in etcd');
      }
  });

  it('restore a snapshot on every node at once, with the tokens of its time', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-etcd-snapshot-'));
    const newToken = async (): Promise<string> =>
      (await cluster.ask(cluster.node(1), 'POST', 'auth/token/create', { policies: ['root'] })).string('auth.client_token');
    try {
      const active = await served();
      const [standby = active] = standbysOf(active);
      const env = { TRANSITD_ADDR: standby.apiAddress, TRANSITD_TOKEN: cluster.rootToken };
      const file = join(folder, 'snapshot');
      const revokedLater = await newToken();
      expectCode(await run(['operator', 'raft', 'snapshot', 'save', file], { env }), 0);
      expect((await cluster.ask(standby, 'POST', 'auth/token/revoke', { token: revokedLater })).status).to.equal(204);
      const madeLater = await newToken();
      for (const node of cluster.nodes) expect((await encrypt(node, 'of-n1', madeLater)).status).to.equal(200);
      expectCode(await run(['operator', 'raft', 'snapshot', 'restore', file], { env }), 0);
      const answers = await Promise.all(cluster.nodes.map((node) => encrypt(node, 'of-n1', madeLater)));
      for (const { status, text } of answers) expect(status, text).to.be.oneOf([403, 503]);
      await served();
      for (const node of cluster.nodes) {
        expect((await encrypt(node, 'of-n1', madeLater)).status).to.equal(403);
        expect((await encrypt(node, 'of-n1', revokedLater)).status).to.equal(200);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('report that their records are in etcd, and the doctor finds no fault with them', async () => {
    const active = await served();
    for (const node of [active, standbysOf(active)[0] ?? active]) {
      expect((await node.ask('GET', 'sys/seal-status')).at('storage_type')).to.equal('etcd');
      const env = { TRANSITD_ADDR: node.apiAddress, TRANSITD_TOKEN: cluster.rootToken };
      const { stdout } = expectCode(await run(['doctor'], { env }), 0);
      expect(stdout).to.match(/^ok +members +3 nodes on etcd$/m);
    }
  });

  it('let another node take over on step-down and on seal', async () => {
    const active = await served();
    expect((await cluster.ask(active, 'POST', 'sys/step-down')).status).to.equal(204);
    const next = await served();
    expect(next).to.not.equal(active);
    expect((await cluster.ask(next, 'POST', 'sys/seal')).status).to.equal(204);
    expect((await next.health())?.code).to.equal(503);
    const third = await served(standbysOf(next));
    expect((await encrypt(third, 'of-n1')).status).to.equal(200);
    await next.restart();
    await served();
  });

  it('lose no acknowledged write when the active node is killed', async () => {
    const active = await served();
    const [writer = active] = standbysOf(active);
    const acknowledged: string[] = [];
    let isOver = false;
    const writing = (async () => {
      for (let number = 1; !isOver; number++) {
        const answer = await cluster.ask(writer, 'POST', `transit/keys/k${number}`).catch(() => undefined);
        if (answer?.status === 200) acknowledged.push(`k${number}`);
      }
    })();
    await until('some writes are acknowledged', async () => acknowledged.length > 20);
    await active.kill();
    const before = acknowledged.length;
    const next = await served(standbysOf(active));
    await until('writes go on', async () => acknowledged.length > before + 5, { explain: () => cluster.tails() });
    isOver = true;
    await writing;
    for (const node of [next, ...standbysOf(active)]) {
      const listed = await cluster.ask(node, 'GET', 'transit/keys?list=true');
      expect(listed.at('data.keys')).to.include.members(acknowledged);
    }
    await active.start();
    await served();
  });

  it('replace an active node that is frozen, which answers nothing from its old state afterwards', async () => {
    const active = await served();
    const token = (await cluster.ask(active, 'POST', 'auth/token/create', { policies: ['root'] })).string('auth.client_token');
    active.pause();
    const next = await served(standbysOf(active));
    expect((await cluster.ask(next, 'POST', 'auth/token/revoke', { token })).status).to.equal(204);
    active.resume();
    const answer = await encrypt(active, 'of-n1', token);
    expect(answer.status, answer.text).to.be.oneOf([403, 503]);
    await served();
    expect((await encrypt(active, 'of-n1', token)).status).to.equal(403);
  });

  it('are cut off without etcd, and go on when it is back', async () => {
    const active = await served();
    etcd.pause();
    await Promise.all(cluster.nodes.map((node) => node.reaches(474)));
    const answers = await Promise.all(cluster.nodes.map((node) => encrypt(node, 'of-n1')));
    expect(answers.map(({ status }) => status)).to.deep.equal([503, 503, 503]);
    etcd.resume();
    await served();
    const created = await cluster.askWhenLed(active, 'POST', 'transit/keys/after');
    expect(created.status, created.text).to.equal(200);
  });
});
