// @live
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type Server } from 'node:http';
import { type AddressInfo, connect, createServer, type Server as TcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RateLimited } from '@transitd/access';
import { BarrierError } from '@transitd/barrier';
import { ClusterError } from '@transitd/cluster';
import { parseConfig } from '@transitd/configuration';
import { StartError } from '@transitd/process';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { pino } from 'pino';
import { until } from '../../../process/test/until.ts';
import { Joining, newCandidate } from '../../src/join/joining.ts';
import { Node } from '../../src/node.ts';

const errorOf = (outcome: Promise<unknown>): Promise<unknown> =>
  outcome.then(
    () => undefined,
    (error: unknown) => error,
  );

/** The API of a member for nodes that join. */
function apiOf(member: Node): Server {
  return createHttpServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    const body = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
    const answer = req.url?.endsWith('challenge')
      ? await member.joinDesk.challenge(body, '127.0.0.1')
      : await member.joinDesk.answer(body);
    res.end(JSON.stringify(answer));
  });
}

describe('a node that joins a cluster', () => {
  let folder = '';
  const closing: (() => unknown)[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-joining-'));
    writeFileSync(join(folder, 'key'), Buffer.alloc(32, 1), { mode: 0o600 });
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
    rmSync(folder, { recursive: true });
  });

  async function open(
    node_id: string,
    seal: 'static' | 'shamir',
    clusterPort = 0,
    retry_join: readonly string[] = [],
  ): Promise<Node> {
    const config = parseConfig({
      node_id,
      data_dir: join(folder, node_id),
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      cluster_addr: `${node_id}.example:8201`,
      cluster_listen: `127.0.0.1:${clusterPort}`,
      retry_join,
      seal: seal === 'static' ? { type: 'static', key_id: 'one', key_file: join(folder, 'key') } : { type: 'shamir' },
    });
    const node = await Node.open({ config, log: pino({ level: 'silent' }), onFatal: () => undefined });
    closing.push(() => node.stop());
    node.listeningAt(`http://${node_id}.example:8200`);
    return node;
  }

  async function listening(server: Server | TcpServer, port = 0): Promise<number> {
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    closing.push(() => server.close());
    return (server.address() as AddressInfo).port;
  }

  /** An initialized and unsealed first node, and the address of its API. */
  async function firstNode(
    seal: 'static' | 'shamir',
    { name = 'n1', apiPort = 0, shareCount = 1 } = {},
  ): Promise<{ readonly node: Node; readonly port: number; readonly leader: string; readonly shares: readonly Uint8Array[] }> {
    const node = await open(name, seal);
    const counts =
      seal === 'static' ? { recoveryShares: 1, recoveryThreshold: 1 } : { secretShares: shareCount, secretThreshold: shareCount };
    const { shares } = await node.initialize(counts);
    if (seal === 'shamir') for (const share of shares) await node.unseal(share);
    const port = await listening(apiOf(node), apiPort);
    return { node, port, leader: `http://127.0.0.1:${port}`, shares };
  }

  /** Joins; repeats the call while the node is busy with its own attempt, which it makes every second. */
  async function joining(node: Node, leader: string): Promise<{ readonly joined: boolean }> {
    for (;;) {
      try {
        return await node.join({ leaders: [leader] }, '127.0.0.1');
      } catch (error) {
        if (!(error instanceof StoreError) || error.code !== 'busy') throw error;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  const accepts = (port: number): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy();
        resolve(true);
      }).on('error', () => resolve(false));
    });

  it('becomes the same member once its cluster port, which was in use, is free', async () => {
    const { node, leader } = await firstNode('static');
    const other = createServer();
    const second = await open('n2', 'static', await listening(other));
    expect(await errorOf(joining(second, leader))).to.be.instanceOf(StartError);
    expect(second.member).to.equal(undefined);
    expect(second.initialized).to.equal(false);
    expect(await errorOf(joining(second, leader))).to.be.instanceOf(StartError);
    await new Promise((resolve) => other.close(resolve));
    expect(await joining(second, leader)).to.deep.equal({ joined: true });
    expect(second.member?.replica.status().clusterId).to.equal(node.member?.replica.status().clusterId);
    expect(node.member?.cluster?.membershipList.members.map(({ name }) => name)).to.deep.equal(['n1', 'n2']);
  });

  it('starts by itself once its cluster port is free', async () => {
    const { leader } = await firstNode('static');
    const other = createServer();
    const second = await open('n2', 'static', await listening(other));
    expect(await errorOf(second.join({ leaders: [leader] }, '127.0.0.1'))).to.be.instanceOf(StartError);
    expect(second.member).to.equal(undefined);
    await new Promise((resolve) => other.close(resolve));
    await until(() => second.member !== undefined);
  });

  it('opens its cluster port later if it bootstrapped the cluster while the port was in use', async () => {
    const other = createServer();
    const port = await listening(other);
    const node = await open('n1', 'static', port);
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
    await until(() => node.member?.cluster?.membershipList.identity !== undefined);
    await new Promise((resolve) => other.close(resolve));
    for (let tries = 0; !(await accepts(port)) && tries < 500; tries++) await node.member?.cluster?.maintain();
    expect(await accepts(port)).to.equal(true);
  });

  it('does not start as an existing member while its cluster port is in use', async () => {
    const node = await open('n1', 'static');
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
    await until(() => node.member?.cluster?.membershipList.identity !== undefined);
    await node.stop();
    expect(await errorOf(open('n1', 'static', await listening(createServer())))).to.be.instanceOf(StartError);
  });

  it('is a member although the shares of the join do not unseal it', async () => {
    const { leader } = await firstNode('static');
    const second = await open('n2', 'static');
    const { unseal } = Joining.prototype;
    closing.push(() => Object.assign(Joining.prototype, { unseal }));
    Joining.prototype.unseal = () => Promise.reject(new BarrierError('invalid_share', 'the shares are those of another key'));
    expect(await second.join({ leaders: [leader] }, '127.0.0.1')).to.deep.equal({ joined: true });
    expect(second.member).not.to.equal(undefined);
    expect(second.member?.cluster).not.to.equal(undefined);
  });

  it('no longer waits for shares after a later join failed', async () => {
    const { leader } = await firstNode('shamir');
    const second = await open('n2', 'shamir');
    expect(await second.join({ leaders: [leader] }, '127.0.0.1')).to.deep.equal({ joined: false });
    expect(second.initialized).to.equal(true);
    const port = await listening(createServer((socket) => socket.destroy()));
    expect(await errorOf(second.join({ leaders: [`http://127.0.0.1:${port}`] }, '127.0.0.1'))).to.be.instanceOf(ClusterError);
    expect(second.initialized).to.equal(false);
    expect(await errorOf(second.unseal(Buffer.alloc(33))))
      .to.be.instanceOf(BarrierError)
      .with.property('code', 'not_initialized');
    expect(await second.join({ leaders: [leader] }, '127.0.0.1')).to.deep.equal({ joined: false });
    expect(second.initialized).to.equal(true);
  });

  it('keeps the shares given for a minute when callers ask it to discard them or to join another cluster', async () => {
    const node = await open('n1', 'shamir');
    const { shares } = await node.initialize({ secretShares: 3, secretThreshold: 2 });
    const [one = Buffer.alloc(0), other = Buffer.alloc(0)] = shares;
    expect(await node.unseal(one)).to.include({ sealed: true, progress: 1 });
    expect(node.resetUnseal('192.0.2.66').ignored).to.match(/less than 60 s ago/);
    expect(await node.unseal(other)).to.include({ sealed: false });
    const port = await listening(apiOf(node));
    const second = await open('n2', 'shamir');
    const leader = `http://127.0.0.1:${port}`;
    expect(await second.join({ leaders: [leader] }, '192.0.2.1')).to.deep.equal({ joined: false });
    expect(await second.unseal(one)).to.include({ sealed: true, progress: 1 });
    expect(second.resetUnseal('192.0.2.66').status).to.include({ progress: 1 });
    expect(await errorOf(second.join({ leaders: [leader] }, '192.0.2.66'))).to.be.instanceOf(RateLimited);
    expect(second.sealStatus.progress).to.equal(1);
  });

  it('looks like a sealed node with the seal of the cluster, and collects shares anew after a reset', async () => {
    const { leader, shares } = await firstNode('shamir', { shareCount: 3 });
    const [one = Buffer.alloc(0)] = shares;
    const pending = await Joining.prepare({
      config: (await open('n2', 'shamir')).config,
      seal: { type: 'shamir' },
      apiAddress: 'http://n2.example:8200',
      leaders: [leader],
      candidate: await newCandidate(),
      stopping: new AbortController().signal,
    });
    const none = { progress: 0, nonce: '' };
    const sealed = { type: 'shamir', initialized: true, sealed: true, t: 3, n: 3, recoverySeal: false, migration: false };
    expect(pending.sealStatus).to.deep.equal({ ...sealed, ...none });
    expect(pending.addShare(one)).to.equal(false);
    expect(pending.addShare(one), 'the same share counts once').to.equal(false);
    const nonce = pending.sealStatus?.nonce;
    expect(pending.sealStatus).to.include({ progress: 1 });
    expect(nonce).to.match(/^[0-9a-f-]{36}$/);
    pending.reset();
    expect(pending.sealStatus).to.include(none);
    expect(pending.addShare(one)).to.equal(false);
    expect(pending.sealStatus?.nonce).to.match(/^[0-9a-f-]{36}$/);
    expect(pending.sealStatus?.nonce).not.to.equal(nonce);
  });

  it('joins the configured cluster as soon as it responds, although a caller named another one, and stays with it', async () => {
    const probe = createServer();
    const apiPort = await listening(probe);
    await new Promise((resolve) => probe.close(resolve));
    const other = await firstNode('shamir', { name: 'x1', shareCount: 2 });
    const second = await open('n2', 'shamir', 0, [`http://127.0.0.1:${apiPort}`]);
    expect(await joining(second, other.leader)).to.deep.equal({ joined: false });
    expect(second.sealStatus.n).to.equal(2);
    await second.unseal(other.shares[0] ?? new Uint8Array());
    const configured = await firstNode('shamir', { apiPort });
    await until(() => second.sealStatus.n === 1);
    expect(await joining(second, other.leader)).to.deep.equal({ joined: false });
    expect(second.sealStatus.n).to.equal(1);
    await second.unseal(configured.shares[0] ?? new Uint8Array());
    expect(second.member?.replica.status().clusterId).to.equal(configured.node.member?.replica.status().clusterId);
  });

  it('calls no address once it is a member, and reports all failed calls alike', async () => {
    const { node } = await firstNode('static');
    let calls = 0;
    const closes = await listening(
      createServer((socket) => {
        calls += 1;
        socket.destroy();
      }),
    );
    expect(await node.join({ leaders: [`http://127.0.0.1:${closes}`] }, '192.0.2.1')).to.deep.equal({ joined: true });
    expect(calls).to.equal(0);
    const second = await open('n2', 'static');
    const errors = new Set<string>();
    const answers = (status: number, body: string): Promise<number> =>
      listening(createHttpServer((_req, res) => res.writeHead(status).end(body)));
    for (const port of [
      closes,
      1,
      await answers(404, '{"errors":["secret"]}'),
      await answers(500, ''),
      await answers(200, 'ok'),
    ]) {
      const error = await errorOf(second.join({ leaders: [`http://127.0.0.1:${port}`] }, '192.0.2.1'));
      expect(error).to.be.instanceOf(ClusterError);
      errors.add(`${(error as ClusterError).code}: ${(error as ClusterError).message}`);
    }
    expect([...errors]).to.deep.equal(['leader_unavailable: this node could not join: its log says why']);
    const target = { leaders: [`http://127.0.0.1:${closes}`] };
    expect(await errorOf(second.join(target, '::ffff:192.0.2.1'))).to.be.instanceOf(RateLimited);
    expect(await errorOf(second.join(target, '192.0.2.2'))).to.be.instanceOf(ClusterError);
  });

  it('repeats a failed join when the request says retry', async () => {
    const { node } = await firstNode('static');
    const refusing = createServer((socket) => socket.destroy());
    const port = await listening(refusing);
    const second = await open('n2', 'static');
    const target = { leaders: [`http://127.0.0.1:${port}`] };
    expect(await errorOf(second.join(target, '127.0.0.1'))).to.be.instanceOf(ClusterError);
    expect(await second.join({ ...target, retry: true }, '127.0.0.1')).to.deep.equal({ joined: false });
    expect(second.member).to.equal(undefined);
    await new Promise((resolve) => refusing.close(resolve));
    await listening(apiOf(node), port);
    await until(() => second.member !== undefined);
  });

  describe('and stops', () => {
    /** Shorter than the waits that a stop must end, the shortest of which is 10 s. */
    const stopMsMax = 5000;
    const stopped = async (node: Node): Promise<number> => {
      const startMs = performance.now();
      await node.stop();
      return performance.now() - startMs;
    };

    it('does not wait for records that its shares would unseal', async () => {
      const { leader, shares } = await firstNode('shamir');
      const second = await open('n2', 'shamir');
      await second.join({ leaders: [leader] }, '127.0.0.1');
      const unsealing = errorOf(second.unseal(shares[0] ?? new Uint8Array()));
      await until(() => second.member !== undefined);
      expect(await stopped(second)).to.be.below(stopMsMax);
      expect(await unsealing)
        .to.be.instanceOf(StoreError)
        .with.property('code', 'stopped');
      expect(second.member?.barrier.state.sealed).to.equal(true);
    });

    it('does not wait for an address that does not answer', async () => {
      const called = Promise.withResolvers<void>();
      const port = await listening(createServer(() => called.resolve()));
      const second = await open('n2', 'shamir');
      const joined = errorOf(second.join({ leaders: [`http://127.0.0.1:${port}`] }, '127.0.0.1'));
      await called.promise;
      expect(await stopped(second)).to.be.below(stopMsMax);
      expect(await joined).to.be.instanceOf(ClusterError);
    });
  });
});
