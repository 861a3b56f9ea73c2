import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import { type LiveEtcd, liveEtcd } from '../../../packages/storage-etcd/test/live-etcd.ts';
import { processMs } from '../../process/live-server.ts';
import { expectCode, type Ran, run } from '../../process/transitd-command.ts';
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
  // While a process is not scheduled for seconds, no node may be active, and a request may stay without an answer. So the requests of these
  // tests can be repeated, and are repeated until their outcome is known.
  const encrypt = (node: LiveNode, key: string, token?: string) =>
    cluster.askUntilKnown(node, 'POST', `transit/encrypt/${key}`, { plaintext }, token === undefined ? {} : { token });
  const encryptOnce = (node: LiveNode, token: string) =>
    cluster.ask(node, 'POST', 'transit/encrypt/of-n1', { plaintext }, { token });
  const newToken = async (node: LiveNode): Promise<string> =>
    (await cluster.askUntilKnown(node, 'POST', 'auth/token/create', { policies: ['root'] })).string('auth.client_token');
  const revoke = async (node: LiveNode, token: string): Promise<void> => {
    const { status, text } = await cluster.askUntilKnown(node, 'POST', 'auth/token/revoke', { token });
    expect(status, text).to.equal(204);
  };
  const command = async (node: LiveNode, ...args: readonly string[]): Promise<string> => {
    let last: Ran | undefined;
    const env = { TRANSITD_ADDR: node.apiAddress, TRANSITD_TOKEN: cluster.rootToken };
    const ran = await until(
      `${args.join(' ')} is answered by ${node.name}`,
      async () => {
        last = await run(args, { env });
        return !/the server refused with 50[34]:/.test(last.stderr) && last;
      },
      { explain: () => `${last?.stderr}\n${cluster.tails()}` },
    );
    return expectCode(ran, 0).stdout;
  };

  it('are uninitialized, until one is initialized and the others unseal themselves', async () => {
    for (const node of cluster.nodes) expect((await node.health())?.code).to.equal(501);
    await cluster.initialize(cluster.node(2)); // and this node becomes active
    await served();
    const again = await cluster.askUntilKnown(cluster.node(1), 'PUT', 'sys/init', { recovery_shares: 1, recovery_threshold: 1 });
    expect(again.status, again.text).to.equal(400);
    let leaders: readonly unknown[] = [];
    await until(
      'each node names the active one, which names itself',
      async () => {
        const active = await served();
        const answers = await Promise.all(cluster.nodes.map((node) => node.ask('GET', 'sys/leader')));
        leaders = answers.map((answer) => [answer.at('leader_address'), answer.at('is_self') === true]);
        return isDeepStrictEqual(
          leaders,
          cluster.nodes.map((node) => [active.apiAddress, node === active]),
        );
      },
      { explain: () => JSON.stringify(leaders) },
    );
  });

  it('accept writes at each node, and read them at each other', async () => {
    for (const node of cluster.nodes) {
      const created = await cluster.askUntilKnown(node, 'POST', `transit/keys/of-${node.name}`);
      expect(created.status, created.text).to.equal(200);
      const index = created.headers.get('X-Service-Index') ?? '';
      for (const other of cluster.nodes) {
        const read = await cluster.askUntilKnown(other, 'GET', `transit/keys/of-${node.name}`, undefined, {
          headers: { 'X-Service-Index': index },
        });
        expect(read.status, read.text).to.equal(200);
      }
      const ciphertext = (await encrypt(node, `of-${node.name}`)).string('data.ciphertext');
      for (const other of cluster.nodes) {
        const decrypted = await cluster.askUntilKnown(other, 'POST', `transit/decrypt/of-${node.name}`, { ciphertext });
        expect(decrypted.string('data.plaintext')).to.equal(plaintext);
      }
    }
  });

  it('refuse a revoked token everywhere, at once', async () => {
    for (const revoker of cluster.nodes) {
      const token = await newToken(revoker);
      for (const node of cluster.nodes) expect((await encrypt(node, 'of-n1', token)).status).to.equal(200);
      await revoke(revoker, token);
      for (const node of cluster.nodes) expect((await encrypt(node, 'of-n1', token)).status).to.equal(403);
    }
  });

  it('report the revisions of etcd and the active node, whichever node is asked', async () => {
    for (const node of cluster.nodes) {
      let text = '';
      const nodes = await until(
        `${node.name} has a report of each node, with the active one`,
        async () => {
          const active = await served();
          ({ text } = await cluster.askUntilKnown(node, 'GET', 'sys/nodes'));
          const { nodes } = JSON.parse(text).data;
          const leaders = nodes.map(({ report }: { readonly report?: { readonly etcd: object } }) => Object(report?.etcd).leader);
          return isDeepStrictEqual(leaders, [active.name, active.name, active.name]) && nodes;
        },
        { explain: () => text },
      );
      expect(nodes.map(({ name }: { readonly name: string }) => name).toSorted()).to.deep.equal(['n1', 'n2', 'n3']);
      for (const { report } of nodes) {
        expect(report.etcd.applied_index).to.be.greaterThan(0);
        expect(report).not.to.have.property('raft');
      }
    }
  });

  it('show the feature levels that each of them supports, and raise the level to the one that all support', async () => {
    const active = await served();
    for (const node of [active, standbysOf(active)[0] ?? active]) {
      let stdout = '';
      const level = await until(
        `${node.name} knows the levels of all nodes`,
        async () => {
          stdout = await command(node, 'operator', 'feature-level', 'status');
          const [, level = ''] = /^Level +(\d+)$/m.exec(stdout) ?? [];
          return cluster.nodes.every(({ name }) => new RegExp(`^${name} +1 +${level}$`, 'm').test(stdout)) && level;
        },
        { explain: () => stdout },
      );
      expect(await command(node, 'operator', 'feature-level', 'raise')).to.match(new RegExp(`^Level +${level}$`, 'm'));
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
        const answer = await cluster.askUntilKnown(node, method, path, body);
        expect(answer.status, `${path}: ${answer.text}`).to.equal(400);
        expect(answer.text).to.include('the records of this cluster are in etcd');
      }
  });

  it('restore a snapshot on every node at once, with the tokens of its time', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-etcd-snapshot-'));
    try {
      const active = await served();
      const [standby = active] = standbysOf(active);
      const file = join(folder, 'snapshot');
      const revokedLater = await newToken(cluster.node(1));
      await command(standby, 'operator', 'raft', 'snapshot', 'save', file);
      await revoke(standby, revokedLater);
      const madeLater = await newToken(cluster.node(1));
      for (const node of cluster.nodes) expect((await encrypt(node, 'of-n1', madeLater)).status).to.equal(200);
      await command(standby, 'operator', 'raft', 'snapshot', 'restore', file);
      const answers = await Promise.all(cluster.nodes.map((node) => encryptOnce(node, madeLater)));
      for (const { status, text } of answers) expect(status, text).to.be.oneOf([403, 503, 504]);
      await served();
      for (const node of cluster.nodes) {
        expect((await encrypt(node, 'of-n1', madeLater)).status).to.equal(403);
        expect((await encrypt(node, 'of-n1', revokedLater)).status).to.equal(200);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('follow keys and shares that another node replaced, also sealed, and those of an older state', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-etcd-keys-'));
    try {
      const active = await served();
      const [standby = active, sealed = active] = standbysOf(active);
      const file = join(folder, 'snapshot');
      await command(active, 'operator', 'raft', 'snapshot', 'save', file);
      const before = (await encrypt(active, 'of-n1')).string('data.ciphertext');
      const isDecrypted = async (node: LiveNode, ciphertext: string): Promise<boolean> => {
        const answer = await cluster.askUntilKnown(node, 'POST', 'transit/decrypt/of-n1', { ciphertext });
        return answer.at('data.plaintext') === plaintext;
      };
      const termOf = async (node: LiveNode): Promise<unknown> =>
        (await cluster.askUntilKnown(node, 'GET', 'sys/key-status')).at('data.term');
      const reports = (node: LiveNode, shares: number) =>
        until(`${node.name} reports ${shares} shares`, async () => (await node.ask('GET', 'sys/seal-status')).at('n') === shares);

      expect((await sealed.ask('PUT', 'sys/seal', { token: cluster.rootToken })).status).to.equal(204);
      expect((await sealed.health())?.code).to.equal(503);
      const former = await termOf(active);
      expect((await cluster.askUntilKnown(active, 'POST', 'sys/rotate')).status).to.equal(204);
      const [key = ''] = cluster.shares;
      await until('the shares are replaced', async () => {
        await cluster.askWhenLed(active, 'DELETE', 'sys/rotate/root/init'); // left by an active node that has lost its role
        const settings = { secret_shares: 3, secret_threshold: 2 };
        const started = await cluster.askWhenLed(active, 'POST', 'sys/rotate/root/init', settings);
        const body = { nonce: started.at('data.nonce'), key };
        return (await cluster.askWhenLed(active, 'POST', 'sys/rotate/root/update', body)).at('data.complete') === true;
      });

      for (const node of cluster.nodes) await reports(node, 3);
      expect(await termOf(active)).to.be.above(Number(former));
      expect(await termOf(standby)).to.equal(await termOf(active));
      const after = (await encrypt(active, 'of-n1')).string('data.ciphertext');
      expect(await isDecrypted(standby, after)).to.equal(true);
      await sealed.restart();
      await served();
      for (const node of cluster.nodes) expect(await isDecrypted(node, after), node.name).to.equal(true);

      await command(active, 'operator', 'raft', 'snapshot', 'restore', '--force', file);
      for (const node of cluster.nodes) await reports(node, 1);
      const next = await served();
      expect(await termOf(next)).to.equal(former);
      for (const node of cluster.nodes) expect(await isDecrypted(node, before), node.name).to.equal(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('report that their records are in etcd, and the doctor finds no fault with them', async () => {
    const active = await served();
    for (const node of [active, standbysOf(active)[0] ?? active]) {
      expect((await node.ask('GET', 'sys/seal-status')).at('storage_type')).to.equal('etcd');
      const env = { TRANSITD_ADDR: node.apiAddress, TRANSITD_TOKEN: cluster.rootToken };
      let last: Ran | undefined;
      await until(
        'the doctor finds no fault',
        async () => {
          await served();
          last = await run(['doctor'], { env });
          return last.code === 0 && /^ok +members +3 nodes on etcd$/m.test(last.stdout);
        },
        { explain: () => `${last?.stdout}${last?.stderr}` },
      );
    }
  });

  it('let another node take over on step-down and on seal', async () => {
    const active = await until('the active node has stepped down', async () => {
      const one = await served();
      return (await cluster.ask(one, 'POST', 'sys/step-down')).status === 204 && one;
    });
    const next = await served();
    expect(next).to.not.equal(active);
    expect((await cluster.askWhenLed(next, 'POST', 'sys/seal')).status).to.equal(204);
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
    let index = '';
    let isOver = false;
    const writing = (async () => {
      for (let number = 1; !isOver; number++) {
        const answer = await cluster.ask(writer, 'POST', `transit/keys/k${number}`).catch(() => undefined);
        if (answer?.status !== 200) continue;
        acknowledged.push(`k${number}`);
        index = answer.headers.get('X-Service-Index') ?? '';
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
      const headers = { 'X-Service-Index': index };
      const listed = await cluster.askUntilKnown(node, 'GET', 'transit/keys?list=true', undefined, { headers });
      expect(listed.at('data.keys')).to.include.members(acknowledged);
    }
    await active.start();
    await served();
  });

  it('replace an active node that is frozen, which answers nothing from its old state afterwards', async () => {
    const active = await served();
    const token = await newToken(active);
    active.pause();
    await revoke(await served(standbysOf(active)), token);
    active.resume();
    const answer = await encryptOnce(active, token);
    expect(answer.status, answer.text).to.be.oneOf([403, 503, 504]);
    await served();
    expect((await encrypt(active, 'of-n1', token)).status).to.equal(403);
  });

  it('are cut off without etcd, and go on when it is back', async () => {
    const active = await served();
    etcd.pause();
    await Promise.all(cluster.nodes.map((node) => node.reaches(474)));
    const answers = await Promise.all(cluster.nodes.map((node) => encryptOnce(node, cluster.rootToken)));
    expect(answers.map(({ status }) => status)).to.deep.equal([503, 503, 503]);
    etcd.resume();
    await served();
    const created = await cluster.askWhenLed(active, 'POST', 'transit/keys/after');
    expect(created.status, created.text).to.equal(200);
  });
});
