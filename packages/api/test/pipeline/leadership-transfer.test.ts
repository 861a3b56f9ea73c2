// @live
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { initialAccess, openAccess } from '@transitd/access';
import { AuditKey } from '@transitd/audit';
import { LeadershipTransferred } from '@transitd/cluster';
import { noContentReply, parsePath, type Reply } from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import { systemClock } from '@transitd/process';
import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { pino } from 'pino';
import { mounted } from '../../../node/test/mounts/mounted.ts';
import { Pipeline } from '../../src/pipeline/pipeline.ts';
import { TestMetrics } from '../test-metrics.ts';

interface Transfers {
  /** Number of runs of the operation that transfer leadership. */
  readonly count: number;
  /** Whether another leader is found after a transfer. */
  readonly nextLeader?: () => Promise<boolean>;
  readonly forwarded?: true;
}

describe('a request that transfers leadership', () => {
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });

  /** Serves an operation that may end leadership; returns the URL. */
  async function served(pipeline: Pipeline, run: () => Reply, kind: object = { endsLeadership: true }): Promise<string> {
    const server = createServer((req, res) => {
      const path = parsePath(req.url ?? '');
      const operation = { access: 'token', name: 'test', ...kind, run: async () => run() } as const;
      void pipeline.serve(req, res, { path, canonical: path.path, url: req.url ?? '', verb: 'POST', operation, params: {} });
    }).listen(0, '127.0.0.1');
    closing.push(() => server.close());
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/sys/step-down`;
  }

  async function openedAccess() {
    const store = memoryStore();
    const { rootToken, writes } = initialAccess({ now: Date.now() });
    await store.commit({ conditions: [], writes });
    const access = openAccess({ store, clock: systemClock });
    const services: Services = { ...access, ...(await mounted(store, 'transit')), auditKey: new AuditKey(store), sinceMs: 0 };
    return { services, rootToken };
  }

  async function asked({ count, nextLeader = async () => true, forwarded }: Transfers) {
    const { services, rootToken } = await openedAccess();
    const metrics = new TestMetrics();
    const terms: number[] = [];
    const eligibility = {
      readRole: 'active',
      waitUntilInForce: async () => undefined,
      hasActiveNodeAfter: (term: number) => {
        terms.push(term);
        return nextLeader();
      },
    };
    const pipeline = new Pipeline({
      node: { services, initialized: true, eligibility } as unknown as Node,
      log: pino({ level: 'silent' }),
      metrics,
      bodyBytesMax: 1000,
      ...(forwarded && { forwarded }),
    });
    let runs = 0;
    const run = () => {
      runs += 1;
      if (runs <= count) throw new LeadershipTransferred(runs);
      return noContentReply;
    };
    const response = await fetch(await served(pipeline, run), {
      method: 'POST',
      headers: { 'X-Service-Token': rootToken },
      body: '{}',
    });
    return { runs, terms, status: response.status, headers: response.headers, text: await response.text() };
  }

  it('is executed again once there is another leader', async () => {
    expect(await asked({ count: 1 })).to.deep.include({ runs: 2, terms: [1], status: 204 });
  });

  it('follows three leadership transfers, and is refused after the fourth', async () => {
    const { text, ...rest } = await asked({ count: 9 });
    expect(rest).to.deep.include({ runs: 4, terms: [1, 2, 3], status: 503 });
    expect(text).to.contain('nothing else was done');
  });

  it('is refused when no other leader is found', async () => {
    expect(await asked({ count: 9, nextLeader: async () => false })).to.deep.include({ runs: 1, status: 503 });
  });

  it('is returned to the node that forwarded it', async () => {
    const { runs, terms, status, headers } = await asked({ count: 9, forwarded: true });
    expect([runs, terms, status, headers.get('x-transitd-handed-over')]).to.deep.equal([1, [], 503, '1']);
  });

  it('is answered with 500 when the search for a leader fails, and does not end the process', async () => {
    const nextLeader = () => Promise.reject(new Error('a fault of ours'));
    expect(await asked({ count: 1, nextLeader })).to.deep.include({
      runs: 1,
      status: 500,
      text: '{"errors":["internal error"]}\n',
    });
  });

  for (const { what, method = 'POST', kind = {}, forwarded, runs } of [
    { what: 'a forwarded change', forwarded: true, runs: 0 },
    { what: 'a forwarded read that may write', kind: { where: 'replica', mayWrite: true }, forwarded: true, runs: 0 },
    { what: 'a forwarded read', method: 'GET', kind: { where: 'replica' }, forwarded: true, runs: 1 },
    { what: 'a forwarded request that transfers leadership', kind: { endsLeadership: true }, forwarded: true, runs: 1 },
    { what: 'a change of its own caller', runs: 1 },
  ] as const)
    it(`during another transfer, ${what} is ${runs === 0 ? 'returned to the node that forwarded it' : 'executed'}`, async () => {
      const access = await openedAccess();
      const pipeline = new Pipeline({
        node: {
          ...{ services: access.services, initialized: true },
          eligibility: { readRole: 'active', isTransferring: true, waitUntilInForce: async () => undefined },
        } as unknown as Node,
        ...{ log: pino({ level: 'silent' }), metrics: new TestMetrics(), bodyBytesMax: 1000 },
        ...(forwarded && { forwarded }),
      });
      let ran = 0;
      const run = () => {
        ran += 1;
        return noContentReply;
      };
      const headers = { 'X-Service-Token': access.rootToken };
      const response = await fetch(await served(pipeline, run, kind), {
        method,
        headers,
        ...(method === 'POST' && { body: '{}' }),
      });
      const notExecuted = response.headers.get('x-transitd-not-executed');
      expect([ran, response.status, notExecuted]).to.deep.equal(runs === 0 ? [0, 503, '1'] : [1, 204, null]);
    });

  it('is forwarded to the next leader with its body, also for a token that this node does not know yet', async () => {
    const store = memoryStore();
    await store.commit({ conditions: [], writes: initialAccess({ now: Date.now() }).writes });
    const services = {
      ...openAccess({ store, clock: systemClock }),
      ...(await mounted(store, 'transit')),
      auditKey: new AuditKey(store),
    };
    const bodies: string[] = [];
    const eligibility = {
      canForward: true,
      hasActiveNodeAfter: async () => true,
      forward: async (req: IncomingMessage, res: ServerResponse, { body }: { readonly body: Buffer | undefined }) => {
        bodies.push((body ?? (await buffer(req))).toString());
        if (bodies.length === 1) throw new LeadershipTransferred(1);
        res.writeHead(204).end();
        return 204;
      },
    };
    const pipeline = new Pipeline({
      node: { services, initialized: true, eligibility } as unknown as Node,
      ...{ log: pino({ level: 'silent' }), metrics: new TestMetrics(), bodyBytesMax: 1000 },
    });
    const body = new Blob(['{"server_id":"n1"}']).stream();
    const init = { method: 'POST', headers: { 'X-Service-Token': 's.new' }, body, duplex: 'half' } as const;
    const { status } = await fetch(await served(pipeline, () => noContentReply), init);
    expect([status, ...bodies]).to.deep.equal([204, '{"server_id":"n1"}', '{"server_id":"n1"}']);
  });
});
