import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createGatewayRouter } from '../../src/pipeline/gateway-router.ts';
import { Limits } from '../../src/pipeline/limits.ts';
import { allRoutes } from '../../src/routes.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

const passedStatus = 299;

describe('a request in a gateway', () => {
  let node: Served;
  let gateway: Server;
  const passed: (string | undefined)[] = [];
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
  const start = async (limits: Limits): Promise<void> => {
    const front = createGatewayRouter({
      look: () => node.services,
      routes: allRoutes(new TestMetrics()),
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

  it('is always passed on by a thread without a place', async () => {
    await start(new Limits({ reads: 0, changes: 1, logins: 1, waiting: 10, body_memory: 1_000_000 }));
    expect([await encrypt(), await encrypt()]).to.deep.equal([passedStatus, passedStatus]);
  });
});
