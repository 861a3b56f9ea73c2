// @live
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { initialAccess, openAccess } from '@transitd/access';
import { AuditKey } from '@transitd/audit';
import { NoActiveNode } from '@transitd/cluster';
import { parsePath, type Reply } from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import { systemClock } from '@transitd/process';
import { memoryStore, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { pino } from 'pino';
import { mounted } from '../../../node/test/mounts/mounted.ts';
import { Pipeline } from '../../src/pipeline/pipeline.ts';
import { TestMetrics } from '../test-metrics.ts';

interface Failover {
  /** Number of forwards that fail. */
  readonly failures: number;
  readonly error?: () => Error;
  /** Whether an active node is found after a failed forward. */
  readonly found?: boolean;
  /** Whether this node itself is the active node afterwards. */
  readonly isElected?: boolean;
  readonly token?: string;
  /** Bytes of the plaintext in the body. */
  readonly bytes?: number;
}

describe('a request that no active node answers', () => {
  const closing: (() => void)[] = [];
  afterEach(() => {
    for (const close of closing.splice(0)) close();
  });

  async function asked({ failures, error, found = true, isElected = false, token, bytes = 5 }: Failover) {
    const store = memoryStore();
    const { rootToken, writes } = initialAccess({ now: Date.now() });
    await store.commit({ conditions: [], writes });
    const access = openAccess({ store, clock: systemClock });
    const services: Services = { ...access, ...(await mounted(store, 'transit')), auditKey: new AuditKey(store), sinceMs: 0 };
    const terms: number[] = [];
    const bodies: (string | undefined)[] = [];
    const eligibility = {
      get readRole() {
        return isElected && terms.length > 0 ? 'active' : undefined;
      },
      mayLead: false,
      canForward: true,
      waitUntilInForce: async () => undefined,
      hasActiveNodeAgain: async (term: number) => {
        terms.push(term);
        return found;
      },
      forward: async (_: IncomingMessage, res: ServerResponse, { body }: { readonly body: Buffer | undefined }) => {
        bodies.push(body?.toString());
        if (bodies.length <= failures) throw error?.() ?? new NoActiveNode(6 + bodies.length);
        res.writeHead(204).end();
        return 204;
      },
    };
    const pipeline = new Pipeline({
      node: { services, initialized: true, eligibility } as unknown as Node,
      log: pino({ level: 'silent' }),
      metrics: new TestMetrics(),
      bodyBytesMax: 1_000_000,
    });
    let runs: unknown[] = [];
    const run = (_: unknown, { body }: { readonly body: unknown }): Reply => {
      runs = [...runs, body];
      return { status: 200, body: '{}' };
    };
    const server: Server = createServer((req, res) => {
      const path = parsePath(req.url ?? '');
      const operation = { access: 'token', name: 'test', run } as never;
      void pipeline.serve(req, res, { path, canonical: path.path, url: req.url ?? '', verb: 'POST', operation, params: {} });
    }).listen(0, '127.0.0.1');
    closing.push(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}/v1/transit/keys/k`, {
      method: 'POST',
      headers: { 'X-Service-Token': token ?? rootToken },
      body: JSON.stringify({ text: 'x'.repeat(bytes) }),
    });
    return { status: response.status, terms, forwards: bodies.length, bodies, runs: runs.length };
  }

  it('is forwarded again with its body once an active node answers', async () => {
    const { bodies, ...rest } = await asked({ failures: 1 });
    expect(rest).to.deep.include({ status: 204, terms: [7], forwards: 2 });
    expect(bodies).to.deep.equal(['{"text":"xxxxx"}', '{"text":"xxxxx"}']);
  });

  it('is executed here if this node was elected meanwhile', async () => {
    expect(await asked({ failures: 9, isElected: true })).to.deep.include({ status: 200, terms: [7], forwards: 1, runs: 1 });
  });

  it('is refused if no active node answers in time', async () => {
    expect(await asked({ failures: 9, found: false })).to.deep.include({ status: 503, terms: [7], forwards: 1 });
  });

  it('is refused after three failovers', async () => {
    expect(await asked({ failures: 9 })).to.deep.include({ status: 503, terms: [7, 8, 9], forwards: 4 });
  });

  for (const { what, failover, status } of [
    { what: 'if its outcome is unknown', failover: { error: () => new StoreError('outcome_unknown', 'no answer') }, status: 504 },
    { what: 'if its token is unknown here', failover: { token: 'svc.unknown' }, status: 503 },
    { what: 'if its long body was forwarded as a stream', failover: { bytes: 100_000 }, status: 503 },
  ])
    it(`is not repeated ${what}`, async () => {
      expect(await asked({ failures: 9, ...failover })).to.deep.include({ status, terms: [], forwards: 1 });
    });
});
