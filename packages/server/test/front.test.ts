// @live
// A node and its listeners in this process, tested with raw bytes.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { allRoutes, createRouter } from '@transitd/api';
import { type Config, parseConfig } from '@transitd/configuration';
import { Node } from '@transitd/node';
import { expect } from 'chai';
import { pino } from 'pino';
import { createListener, Listener } from '../src/listener.ts';
import { Metrics } from '../src/metrics/metrics.ts';
import { createTelemetry } from '../src/telemetry.ts';

interface Served {
  readonly node: Node;
  readonly token: string;
  readonly port: number;
  readonly telemetryPort: number;
  stop(): Promise<void>;
}

async function serve(folder: string, seal: object, { initialize }: { readonly initialize: boolean }): Promise<Served> {
  const config: Config = parseConfig({
    node_id: 'n1',
    data_dir: join(folder, 'data'),
    listeners: [{ address: '127.0.0.1:0', tls_disable: true, max_request_size: '1MiB' }],
    seal,
  });
  const [listenerConfig] = config.listeners;
  if (listenerConfig === undefined) throw new Error('no listener');
  const log = pino({ level: 'silent' });
  const onFatal = (error: Error): never => {
    throw error;
  };
  const node = await Node.open({ config, log, onFatal });
  const token = initialize ? (await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 })).rootToken : '';
  const metrics = new Metrics('svc', { node: () => node });
  const front = createRouter({ node, log, metrics, routes: allRoutes(metrics), bodyBytesMax: listenerConfig.max_request_size });
  const listener = new Listener(front, (counted) => createListener(listenerConfig, counted));
  const telemetry = new Listener(createTelemetry(node, metrics), (counted) =>
    createListener({ headers_timeout: 10_000 }, counted),
  );
  const portOf = async (each: Listener) => Number(new URL(await each.listen(listenerConfig.address)).port);
  return {
    node,
    token,
    port: await portOf(listener),
    telemetryPort: await portOf(telemetry),
    stop: async () => {
      await Promise.all([listener.drain(), telemetry.drain()]);
      await node.stop();
    },
  };
}

describe('the front', () => {
  let folder = '';
  let served: Served;
  const sockets: Socket[] = [];
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-front-'));
    writeFileSync(join(folder, 'seal'), Buffer.alloc(32, 1), { mode: 0o600 });
    served = await serve(folder, { type: 'static', key_id: 'one', key_file: join(folder, 'seal') }, { initialize: true });
    await served.node.services?.mounts.engines.get('transit')?.createKey('k1', {});
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  after(async () => {
    await served.stop();
    rmSync(folder, { recursive: true });
  });

  /** Sends the bytes and returns the response, up to the end of the connection or of the awaited response. */
  async function exchange(bytes: string, { port = served.port, until = /\r\n\r\n/ } = {}): Promise<string> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    sockets.push(socket);
    socket.on('error', () => undefined);
    let received = '';
    let closed = false;
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('end', () => {
      closed = true;
    });
    socket.write(bytes, 'latin1');
    const whole = () => {
      const end = received.search(until);
      const length = Number(/\r\nContent-Length: (\d+)/.exec(received)?.[1] ?? 0);
      return end >= 0 && received.length >= end + 4 + (bytes.startsWith('HEAD') ? 0 : length);
    };
    while (!closed && !whole()) await turn();
    return received;
  }

  interface RequestParts {
    readonly token?: string | null;
    readonly body?: string;
    readonly headers?: readonly string[];
    readonly port?: number;
  }

  async function ask(line: string, { token = served.token, body, headers = [], port = served.port }: RequestParts = {}) {
    const all = [
      'Host: node',
      ...(token === null ? [] : [`X-Service-Token: ${token}`]),
      ...(body === undefined ? [] : [`Content-Length: ${body.length}`]),
      ...headers,
    ];
    const text = await exchange(`${line} HTTP/1.1\r\n${all.map((each) => `${each}\r\n`).join('')}\r\n${body ?? ''}`, { port });
    const [head = '', content = ''] = text.split('\r\n\r\n');
    return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), head, content };
  }

  for (const { line, status, error } of [
    { line: 'GET /v1/nope/keys/k1', status: 404, error: 'no handler for route \\"nope/keys/k1\\". route entry not found.' },
    { line: 'LIST /v1/nope/keys', status: 404, error: 'no handler for route' },
    { line: 'GET /v1/nope/keys/?list=true', status: 404, error: 'no handler for route' },
    { line: 'POST /v1/nope/encrypt/k1', status: 404, error: 'no handler for route' },
    { line: 'GET /v1/nope/encrypt/k1', status: 404, error: 'no handler for route' },
    { line: 'OPTIONS /v1/nope/encrypt/k1', status: 404, error: 'no handler for route' },
    { line: 'GET /v1/__proto__/keys/a', status: 404, error: 'no handler for route' },
    { line: 'GET /v1/sys/keys/k1', status: 404, error: 'unsupported path' },
    { line: 'GET /v1/transit/nope', status: 404, error: 'unsupported path' },
    { line: 'GET /v1/transit/encrypt/k1', status: 405, error: 'unsupported operation' },
    { line: 'OPTIONS /v1/transit/encrypt/k1', status: 405, error: 'unsupported operation' },
    { line: 'GET /v1/transit/keys', status: 405, error: 'unsupported operation' },
    { line: 'GET /v1/transit/keys/', status: 405, error: 'unsupported operation' },
    { line: 'GET /v1/transit/keys/?list=true', status: 200, error: '"k1"' },
    { line: 'LIST /v1/transit/keys/', status: 200, error: '"k1"' },
    { line: 'GET /v1/transit/keys/k1/', status: 400, error: 'slash' },
    { line: 'DELETE /v1/transit/keys/k1/', status: 400, error: 'slash' },
    { line: 'POST /v1/transit/encrypt/k1/', status: 400, error: 'slash' },
    { line: 'GET /v1/sys/seal-status/', status: 400, error: 'slash' },
    { line: 'GET /v1/sys/health/', status: 400, error: 'slash' },
    { line: 'PATCH /v1/transit/keys/k1', status: 415, error: 'merge-patch' },
  ])
    it(`answers ${line} with ${status}`, async () => {
      const answer = await ask(line);
      expect(answer.status).to.equal(status);
      expect(answer.content).to.contain(error);
    });

  it('answers a PATCH on a known path with 405', async () => {
    const headers = ['Content-Type: application/merge-patch+json; charset=utf-8'];
    expect((await ask('PATCH /v1/transit/keys/k1', { headers, body: '{}' })).status).to.equal(405);
  });

  it('reveals nothing about routes, mounts and slashes without a token', async () => {
    for (const line of ['GET /v1/nope/keys/k1', 'GET /v1/transit/keys/k1/', 'GET /v1/sys/health/', 'GET /v1/transit/encrypt/k1'])
      expect((await ask(line, { token: null })).status, line).to.equal(403);
  });

  it('answers 403 to a long body without a token, with Content-Length or chunked', async () => {
    const long = 'a'.repeat(70_000);
    const announced = await ask('POST /v1/transit/encrypt/k1', { token: null, body: long });
    const chunked = await ask('POST /v1/transit/encrypt/k1', {
      token: null,
      headers: ['Transfer-Encoding: chunked', '', `${long.length.toString(16)}\r\n${long}`],
    });
    for (const { status, head, content } of [announced, chunked]) {
      expect([status, content]).to.deep.equal([403, '{"errors":["permission denied"]}\n']);
      expect(head).to.match(/\r\nConnection: close/);
    }
  });

  it('answers 400 to malformed JSON without a token, and 413 to an oversized body with a token', async () => {
    expect((await ask('POST /v1/transit/encrypt/k1', { token: null, body: '{' })).status).to.equal(400);
    expect((await ask('POST /v1/transit/encrypt/k1', { headers: ['Content-Length: 1048577'] })).status).to.equal(413);
  });

  for (const { name, line, headers } of [
    { name: 'health', line: 'GET /v1/sys/health', headers: [] },
    { name: 'the refusal to wrap', line: 'POST /v1/transit/encrypt/k1', headers: ['X-Service-Wrap-TTL: soon'] },
    { name: 'an unknown namespace', line: 'POST /v1/transit/encrypt/k1', headers: ['X-Service-Namespace: a'] },
  ])
    it(`closes the connection after a body that ${name} leaves unread`, async () => {
      const { head } = await ask(line, { headers: ['Content-Length: 1000', ...headers] });
      expect(head).to.match(/\r\nConnection: close/);
    });

  it('keeps the connection after Content-Length: 0', async () => {
    const { head } = await ask('GET /v1/sys/health', { headers: ['Content-Length: 0'] });
    expect(head).to.not.match(/\r\nConnection: close/);
  });

  it('answers every request itself, including those that Node would handle', async () => {
    for (const { bytes, status, text } of [
      { bytes: 'GET /v1/sys/health HTTP/1.1\r\n\r\n', status: 400, text: 'Host' },
      { bytes: 'GET /v1/sys/health HTTP/1.0\r\n\r\n', status: 200, text: '"initialized":true' },
      { bytes: 'GET /v1/sys/health HTTP/1.1\r\nHost: n\r\nExpect: foo\r\n\r\n', status: 417, text: '100-continue' },
      { bytes: 'LIST /v1/transit/keys HTTP/1.1\r\nHost: n\r\nExpect: foo\r\n\r\n', status: 417, text: '100-continue' },
      { bytes: 'CONNECT host:443 HTTP/1.1\r\nHost: host:443\r\n\r\n', status: 405, text: 'unsupported operation' },
    ]) {
      const answer = await exchange(bytes);
      expect(answer, bytes).to.match(new RegExp(`^HTTP/1\\.1 ${status} `));
      expect(answer.match(/HTTP\/1\.1 \d/g), bytes).to.have.length(1);
      expect(answer, bytes)
        .to.match(/\r\nCache-Control: no-store\r\n/)
        .and.contain(text);
    }
  });

  it('counts the headers of requests for telemetry too', async () => {
    for (const [others, status] of [
      [999, 200],
      [1000, 431],
    ] as const) {
      const headers = Array.from({ length: others }, () => 'A:');
      expect((await ask('GET /metrics', { token: null, headers, port: served.telemetryPort })).status).to.equal(status);
    }
  });

  for (const name of ['Host', 'Authorization', 'Content-Type'])
    it(`refuses a request with two ${name} headers, of which Node keeps one`, async () => {
      const { status, content } = await ask('GET /v1/transit/keys/k1', { headers: [`${name}: a`, `${name.toUpperCase()}: b`] });
      expect(status).to.equal(400);
      expect(content).to.contain(`one ${name} header`);
    });

  it('answers CONNECT after the request before it', async () => {
    const get = `GET /v1/transit/keys/k1 HTTP/1.1\r\nHost: n\r\nX-Service-Token: ${served.token}\r\n\r\n`;
    const answer = await exchange(`${get}CONNECT host:443 HTTP/1.1\r\nHost: host:443\r\n\r\n`, { until: /405[\s\S]*\r\n\r\n/ });
    expect([...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).to.deep.equal(['200', '405']);
  });

  it('sends no content type for a refused HEAD on health', async () => {
    const { status, head } = await ask('HEAD /v1/sys/health?activecode=x');
    expect(status).to.equal(400);
    expect(head).to.not.match(/content-type/i);
  });

  it('refuses a number out of range with 400', async () => {
    const { status, content } = await ask('POST /v1/transit/encrypt/k1', { body: '{"plaintext":1e400}' });
    expect(status).to.equal(400);
    expect(content).to.contain('out of range');
  });

  for (const path of ['sys/rotate', 'sys/rotate/config'])
    it(`warns about unknown members on ${path}`, async () => {
      const { status, content } = await ask(`POST /v1/${path}`, { body: '{"foo":1}' });
      expect(status).to.equal(200);
      expect(content).to.contain('Endpoint ignored these unrecognized parameters: [foo]');
      expect((await ask(`POST /v1/${path}`, { body: '{}' })).status).to.equal(204);
    });

  it('closes stalled connections with a pending response', () => {
    const { listeners } = served.node.config;
    const [config] = listeners;
    if (config === undefined) throw new Error('no listener');
    expect(createListener(config, () => undefined).timeout).to.equal(120_000);
  });

  for (const [line, status] of [
    ['GET /v1/sys/health', 200],
    ['GET /v1/sys/health?activecode=299', 299],
    ['GET /v1/sys/health/', 404],
    ['GET /v1/transit/keys/k1', 404],
    ['POST /v1/sys/health', 405],
    ['GET /metrics', 200],
  ] as const)
    it(`answers ${line} on the telemetry listener with ${status}`, async () => {
      expect((await ask(line, { port: served.telemetryPort })).status).to.equal(status);
    });
});

/** A node that is unsealed but still loads its services. */
const loadingNode = (): Node =>
  Object.create(Node.prototype, {
    member: { value: undefined },
    services: { value: undefined },
    initialized: { value: true },
    sealStatus: { value: { sealed: false } },
  });

describe('the front of a node that is not serving', () => {
  let folder = '';
  let served: Served;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-front-'));
    served = await serve(folder, { type: 'shamir' }, { initialize: false });
  });
  after(async () => {
    await served.stop();
    rmSync(folder, { recursive: true });
  });

  for (const { state, node, status } of [
    { state: 'is sealed', node: () => served.node, status: 204 },
    { state: 'is still loading its services, without sealing it,', node: loadingNode, status: 503 },
  ])
    it(`answers sys/seal without a token with ${status} when it ${state}`, async () => {
      const metrics = new Metrics('svc', { node: () => undefined });
      const log = pino({ level: 'silent' });
      const front = createRouter({ node: node(), log, metrics, routes: allRoutes(metrics), bodyBytesMax: 1000 });
      const listener = new Listener(front, createServer);
      const url = await listener.listen({ host: '127.0.0.1', port: 0 });
      const response = await fetch(`${url}/v1/sys/seal`, { method: 'POST' });
      await listener.drain();
      expect(response.status).to.equal(status);
    });

  const reason = 'transitd is not initialized';
  for (const [method, path, body, status, error] of [
    // Vault's command line prints the status of a node only if this error contains these words.
    ['GET', 'sys/leader', undefined, 503, `${reason} (Vault is sealed)`],
    ['GET', 'transit/keys/k1', undefined, 503, reason],
    ['POST', 'sys/unseal', '{"key":"00"}', 400, reason],
    ['POST', 'sys/unseal', '{"reset":true}', 400, reason],
  ] as const)
    it(`reports that the node is not initialized: ${method} ${path} ${body ?? ''}`, async () => {
      const response = await fetch(`http://127.0.0.1:${served.port}/v1/${path}`, { method, ...(body && { body }) });
      expect([response.status, await response.text()]).to.deep.equal([status, `${JSON.stringify({ errors: [error] })}\n`]);
    });
});
