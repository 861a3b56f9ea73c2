// @live
// Callers that hold resources: silent connections, unfinished heads and bodies, and expensive work.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';

describe('slow callers', () => {
  const bench = new Workbench();
  const sockets: Socket[] = [];
  let server: LiveServer;
  let token = '';
  let telemetry = '';
  const limits = { reads: 1, changes: 1, waiting: 0, body_memory: '2MiB', connections: 32 };

  before(async function () {
    this.timeout(processMs);
    const folder = bench.folder();
    const file = join(folder, 'transitd.json');
    const config = {
      node_id: 'n1',
      data_dir: join(folder, 'data'),
      listeners: [{ address: '127.0.0.1:0', tls_disable: true, max_request_size: '1MiB' }],
      seal: { type: 'static', key_id: 'test', key_env: 'TEST_SEAL_KEY' },
      limits,
    };
    writeFileSync(file, JSON.stringify(config));
    const env = { TEST_SEAL_KEY: Buffer.alloc(32, 7).toString('base64') };
    server = await bench.start({ dataDir: folder, command: ['server', '--config', file], env });
    telemetry = (await server.log(/"telemetry":"(http[^"]+)"/))[1] ?? '';
    token = (await server.call('PUT', 'sys/init', { recovery_shares: 1, recovery_threshold: 1 }, null)).string('root_token');
    await until('it is active', async () => (await server.call('GET', 'sys/health', undefined, null)).status === 200);
    for (const [name, type] of Object.entries({ k: 'aes256-gcm96', slow: 'ecdsa-p521' }))
      expect((await server.call('POST', `transit/keys/${name}`, { type }, token)).status, name).to.equal(200);
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  after(() => bench.clean());

  const open = async (sent: string): Promise<void> => {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    socket.on('error', () => undefined); // the server may close the connection
    await once(socket, 'connect');
    socket.write(sent);
  };
  /** Uses a new connection: the server could close an idle connection to make room, just when the test uses it again. */
  const newcomer = async (method: string, path: string, body?: object): Promise<number | undefined> => {
    const sent = request(`${server.url}/v1/${path}`, { method, agent: false, headers: { 'X-Service-Token': token } });
    sent.end(body && JSON.stringify(body));
    const [answer]: IncomingMessage[] = await once(sent, 'response');
    answer?.resume();
    return answer?.statusCode;
  };
  const figure = async (line: string): Promise<number> => {
    const text = await (await fetch(`${telemetry}/metrics`)).text();
    return Number(
      text
        .split('\n')
        .find((each) => each.startsWith(`${line} `))
        ?.slice(line.length + 1),
    );
  };
  const head = (path: string, length: number, more = ''): string =>
    `POST /v1/${path} HTTP/1.1\r\nHost: x\r\n${more}Content-Length: ${length}\r\n\r\n`;

  it('do not keep others out, however many connections they open', async function () {
    this.timeout(processMs);
    const tokenLine = `X-Service-Token: ${token}\r\n`;
    for (const sent of [
      '',
      'GET /v1/sys/hea',
      'LIST /v1/x HT',
      `${head('transit/encrypt/k', 100)}{"plain`,
      `${head('transit/encrypt/k', 1_000_000, tokenLine)}{"plain`,
      `${head('auth/token/create', 1_000_000, tokenLine)}{"x":"${'A'.repeat(100_000)}`,
    ])
      for (let n = 0; n < 12; n += 1) await open(sent);
    for (let n = 0; n < 5; n += 1) {
      expect(await newcomer('GET', 'sys/health')).to.equal(200);
      expect(await newcomer('POST', 'transit/encrypt/k', { plaintext: 'AAAA' })).to.equal(200);
      expect(await newcomer('POST', `transit/keys/k${n}`, {})).to.equal(200);
    }
    expect(await figure('svc_core_connections')).to.be.at.most(limits.connections);
    expect(await figure('svc_core_connections_evicted')).to.be.at.least(72 - limits.connections);
  });

  it('that request much work get 503 with Retry-After, while health, metrics and changes are served', async function () {
    this.timeout(processMs);
    // Long enough that the next two requests come while it is worked on, even if this process stalls between them.
    const batch = server.call('POST', 'transit/sign/slow', { batch_input: Array(3_000).fill({ input: 'AAAA' }) }, token);
    await until('it works on the batch', async () => (await figure('svc_core_requests_executing{kind="reads"}')) === 1);
    const refused = await server.call('POST', 'transit/encrypt/k', { plaintext: 'AAAA' }, token);
    expect([refused.status, refused.headers.get('retry-after'), refused.text]).to.deep.equal([
      503,
      '1',
      '{"errors":["the node has too much to do at the moment; nothing was done"]}\n',
    ]);
    expect((await server.call('GET', 'sys/health', undefined, null)).status).to.equal(200);
    expect((await server.call('GET', 'sys/metrics', undefined, token)).status).to.equal(200);
    expect((await server.call('POST', 'transit/keys/meanwhile', {}, token)).status).to.equal(200);
    expect((await batch).status).to.equal(200);
    expect((await server.call('POST', 'transit/encrypt/k', { plaintext: 'AAAA' }, token)).status).to.equal(200);
    expect(await figure('svc_core_requests_refused{kind="reads"}')).to.equal(1);
  });
});
