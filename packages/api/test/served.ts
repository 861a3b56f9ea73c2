import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { closeAccess, initialAccess, type Kubernetes, openAccess } from '@transitd/access';
import { type AuditDevices, AuditKey, initialAuditKey } from '@transitd/audit';
import type { Node, Services } from '@transitd/node';
import { systemClock } from '@transitd/process';
import { memoryStore } from '@transitd/storage-fsm';
import type { TransitEngine } from '@transitd/transit-engine';
import pino from 'pino';
import { mounted } from '../../node/test/mounts/mounted.ts';
import type { Limits } from '../src/pipeline/limits.ts';
import { createRouter } from '../src/pipeline/router.ts';
import { allRoutes } from '../src/routes.ts';
import { DeclaredAnswers } from './declared-answers.ts';
import { lightMethods } from './light-methods.ts';
import { TestMetrics } from './test-metrics.ts';

/** A response with its body as JSON; the body is `{}` if the response has no content. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of any shape
  readonly body: any;
}

export type Ask = (
  line: string,
  options?: { readonly token?: string | null; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> },
) => Promise<Answer>;

export interface Served {
  readonly url: URL;
  readonly ask: Ask;
  readonly rootToken: string;
  readonly store: ReturnType<typeof memoryStore>;
  readonly services: Services;
  readonly metrics: TestMetrics;
  /** The parts of a node that the routes need; a test may change them. */
  readonly node: { -readonly [Name in 'member' | 'services' | 'eligibility']: Node[Name] };
  close(): void;
}

/** A server with every route over a store in memory, with one transit mount. Tests send requests by HTTP. */
export async function served({
  trustedProxies = [],
  audit,
  limits,
  logTo,
  forwarded = false,
  bodyBytesMax = 1_000_000,
  kubernetes,
}: {
  readonly trustedProxies?: readonly string[];
  readonly audit?: AuditDevices;
  readonly limits?: Limits;
  /** Called with each line of the log. */
  readonly logTo?: (line: string) => void;
  readonly forwarded?: boolean;
  readonly bodyBytesMax?: number;
  readonly kubernetes?: Kubernetes;
} = {}): Promise<Served> {
  const store = memoryStore();
  const { rootToken, writes } = initialAccess({ now: Date.now() });
  await store.commit({ conditions: [], writes: [...writes, initialAuditKey()] });
  const metrics = new TestMetrics();
  const routes = allRoutes(metrics, audit);
  const access = openAccess({ store, clock: systemClock, methods: lightMethods, ...(kubernetes && { kubernetes }) });
  await access.quotas.open();
  const services: Services = {
    ...access,
    ...(await mounted(store, 'transit')),
    auditKey: new AuditKey(store),
    sinceMs: 0,
  };
  const node = {
    services,
    initialized: true,
    clock: systemClock,
    member: {
      ...{ kind: 'raft', clusterName: { id: '00000000', name: 'test' }, peers: { membershipList: { members: [] } } },
      usage: {
        of: async (engine: TransitEngine, name: string) => ({ ...(await engine.usedKey(name)), sinceMs: 0, unanswered: [] }),
      },
    },
    requireMember: () => node.member,
    eligibility: { readRole: 'active', waitUntilInForce: async () => undefined },
    config: { data_dir: '.', storage: { type: 'raft' } },
    sealStatus: {
      ...{ type: 'shamir', initialized: true, sealed: false, t: 1, n: 1, progress: 0, nonce: '' },
      ...{ recoverySeal: false, migration: false },
    },
    removed: false,
    apiAddress: 'http://127.0.0.1:8200',
  } as unknown as Node;
  const log = logTo === undefined ? pino({ level: 'silent' }) : pino({ level: 'trace' }, { write: logTo });
  const front = createRouter({
    node,
    log,
    metrics,
    routes,
    bodyBytesMax,
    trustedProxies,
    audit,
    limits,
    ...(forwarded && { forwarded }),
  });
  const server: Server = createServer(front).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const declared = new DeclaredAnswers(routes);
  const ask: Ask = async (line, { token = rootToken, body, headers = {} } = {}) => {
    const [method = '', path = ''] = line.split(' ');
    const response = await fetch(`http://127.0.0.1:${port}/v1/${path}`, {
      method,
      headers: { ...(token !== null && { 'X-Service-Token': token }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    declared.check(method, path, { status: response.status, text }, services.mounts);
    return { status: response.status, headers: response.headers, text, body: text === '' ? {} : JSON.parse(text) };
  };
  const close = (): void => {
    server.close();
    server.closeAllConnections();
    services.mounts.close();
    closeAccess(access);
  };
  return { url: new URL(`http://127.0.0.1:${port}`), ask, rootToken, store, services, metrics, node, close };
}
