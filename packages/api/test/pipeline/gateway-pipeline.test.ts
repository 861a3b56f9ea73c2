// @live
import { once } from 'node:events';
import { Agent, createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { NodeStatus } from '@transitd/health';
import { dataReply } from '@transitd/http';
import { expect } from 'chai';
import { inGateway } from '../../src/operation/operation.ts';
import { createGatewayRouter } from '../../src/pipeline/gateway-router.ts';
import { Limits } from '../../src/pipeline/limits.ts';
import { allRoutes } from '../../src/routes.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

const passedStatus = 298;
const disabled = { performance: 'disabled', disasterRecovery: 'disabled' } as const;

describe('a request in a gateway', () => {
  let node: Served;
  let gateway: Server;
  const passed: (string | undefined)[] = [];
  let status: NodeStatus | undefined;
  beforeEach(async () => {
    node = await served();
    await node.ask('POST transit/keys/k');
    passed.length = 0;
  });
  afterEach(() => {
    node.close();
    gateway.close();
    gateway.closeAllConnections();
  });

  /** Serves a gateway with these limits; a request that it passes on is answered with a status of its own. */
  const start = async (
    limits = new Limits({ reads: 2, changes: 1, logins: 1, waiting: 10, body_memory: 1_000_000 }),
    routes = allRoutes(new TestMetrics()),
  ) => {
    const front = createGatewayRouter({
      look: () => node.services,
      activeStatus: () => status,
      routes,
      limits,
      bodyBytesMax: 1_000_000,
      bodyBytesHere: 1_000_000,
      begun: () => () => undefined,
      answered: () => undefined,
      pass: (_req, res, body) => {
        passed.push(body?.toString());
        res.writeHead(passedStatus).end();
      },
    });
    gateway = createServer(front).listen(0, '127.0.0.1');
    await once(gateway, 'listening');
  };
  const body = JSON.stringify({ plaintext: 'aGVsbG8=' });
  const encrypt = async (): Promise<number> => {
    const { port } = gateway.address() as AddressInfo;
    const headers = { 'X-Service-Token': node.rootToken };
    return (await fetch(`http://127.0.0.1:${port}/v1/transit/encrypt/k`, { method: 'POST', headers, body })).status;
  };

  it('is passed on with its body, at once and uncounted, while every place of the thread is taken', async () => {
    const limits = new Limits({ reads: 2, changes: 1, logins: 1, waiting: 10, body_memory: 1_000_000 });
    await start(limits);
    expect(await encrypt()).to.equal(200);
    for (const caller of ['a', 'b']) expect(limits.reads.tryEnter(caller)).to.equal(true);
    expect(await encrypt()).to.equal(passedStatus);
    expect(passed).to.deep.equal([body]);
    expect([limits.reads.atWork, limits.reads.waiting, limits.reads.refused]).to.deep.equal([2, 0, 0]);
    limits.reads.leave('a');
    expect(await encrypt()).to.equal(200);
    expect(limits.reads.atWork).to.equal(1);
  });

  it('is passed on with its body if the thread has no memory for its values, or executes two such of its token', async () => {
    const limits = new Limits({ reads: 2, changes: 1, logins: 1, waiting: 10, body_memory: 1_000_000 });
    await start(limits);
    const other = { tokenId: 'other', address: 'other' };
    const { port } = gateway.address() as AddressInfo;
    const large = JSON.stringify({ plaintext: 'aGVsbG8=', x: Array(50_000).fill(1) });
    const ask = async (): Promise<number> =>
      (
        await fetch(`http://127.0.0.1:${port}/v1/transit/encrypt/k`, {
          method: 'POST',
          headers: { 'X-Service-Token': node.rootToken },
          body: large,
        })
      ).status;
    expect(limits.bodies.tryParse(other, 64_000_000)).to.equal(true);
    expect(await ask()).to.equal(passedStatus);
    expect(passed).to.deep.equal([large]);
    expect([limits.reads.atWork, limits.bodies.waiting]).to.deep.equal([0, 0]);
    limits.bodies.parsed(other, 64_000_000);
    expect([await ask(), await ask()]).to.deep.equal([200, 200]);
    const { id } = (await node.services.tokens.authenticate(node.rootToken)) ?? { id: '' };
    for (let n = 0; n < 2; n += 1) expect(limits.batches.tryEnter(id)).to.equal(true);
    expect([await encrypt(), await ask()]).to.deep.equal([200, passedStatus]);
    limits.batches.leave(id);
    expect([await ask(), limits.batches.atWork]).to.deep.equal([200, 1]);
  });

  it('is passed on with its body if the result has no JSON form', async () => {
    const faulty = inGateway({
      ...{ access: 'token', name: 'faulty', capability: 'update' },
      run: () => dataReply({ index: 1n }),
    });
    await start(undefined, [{ path: ':mount/encrypt/:name', operations: { POST: faulty } }]);
    expect([await encrypt(), ...passed]).to.deep.equal([passedStatus, body]);
  });

  it('is answered if it asks for the health of a node that is certainly active, as the main thread would answer', async () => {
    await start();
    const { port } = gateway.address() as AddressInfo;
    const ask = async (path: string, options: RequestInit = {}): Promise<[number, string]> => {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/${path}`, options);
      return [answer.status, await answer.text()];
    };
    status = undefined;
    expect(await ask('sys/health')).to.deep.equal([passedStatus, '']);
    status = { state: 'active', version: '1', cluster: { id: 'c', name: 'n' }, lastWal: 7, replication: disabled };
    const [code, text] = await ask('sys/health');
    expect([code, JSON.parse(text)]).to.deep.equal([
      200,
      { ...JSON.parse(text), sealed: false, standby: false, cluster_id: 'c', last_wal: 7, replication_dr_mode: 'disabled' },
    ]);
    expect(await ask('sys/health', { method: 'HEAD' })).to.deep.equal([200, '']);
    expect((await ask('sys/health?activecode=299'))[0]).to.equal(299);
    expect(await ask('sys/health?activecode=x')).to.deep.equal([400, '{"errors":[]}\n']);
    expect((await ask('sys/health', { method: 'POST' }))[0]).to.equal(405);
    passed.length = 0;
    for (const path of ['sys/health/', 'sys/healthy', 'sys/leader']) expect((await ask(path))[0], path).to.equal(passedStatus);
    expect((await ask('sys/health', { headers: { 'X-Service-Namespace': 'a' } }))[0]).to.equal(passedStatus);
    expect(passed).to.have.length(4);
  });

  it('ends its connection as the third in a row for the main thread, or as the sixteenth after one of its own or with TLS', async () => {
    await start();
    const { port } = gateway.address() as AddressInfo;
    let agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = (path: string, sent: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const headers = { 'X-Service-Token': node.rootToken, 'Content-Length': sent.length };
        const asked = request({ port, agent, method: 'POST', path: `/v1/transit/${path}`, headers }, (answer) => {
          answer.resume().on('end', () => resolve(`${answer.statusCode} ${answer.headers.connection}`));
        });
        asked.on('error', reject).end(sent);
      });
    const create = (count: number) => Array.from({ length: count }, (_, n) => ask(`keys/${n}`, '{}'));
    const kept = `${passedStatus} keep-alive`;
    const close = `${passedStatus} close`;
    expect(await Promise.all(create(5))).to.deep.equal([kept, kept, close, kept, kept]);
    expect(await ask('encrypt/k', body)).to.equal('200 keep-alive'); // so the next one is the first again
    expect(await Promise.all(create(15))).to.deep.equal(Array(15).fill(kept));
    expect(await ask('encrypt/k', body)).to.equal('200 keep-alive');
    expect(await Promise.all(create(17))).to.deep.equal([...Array(15).fill(kept), close, kept]);
    agent.destroy();
    agent = new Agent({ keepAlive: true, maxSockets: 1 });
    gateway.on('connection', (socket) => Object.assign(socket, { encrypted: true })); // as sockets of TLS
    expect(await Promise.all(create(16)), 'with TLS').to.deep.equal([...Array(15).fill(kept), close]);
    agent.destroy();
  });

  it('is always passed on by a thread without a place', async () => {
    await start(new Limits({ reads: 0, changes: 1, logins: 1, waiting: 10, body_memory: 1_000_000 }));
    expect([await encrypt(), await encrypt()]).to.deep.equal([passedStatus, passedStatus]);
  });
});
