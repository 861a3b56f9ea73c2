// @live
// Callers that only keep connections open cannot use up the file descriptors that storage needs.
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { figureOf, RawConnections, telemetryOf } from './raw-connections.ts';

/** Runs a command with a limit of open files. */
const withOpenFiles = (limit: number): readonly string[] => ['sh', '-c', `ulimit -n ${limit}; exec "$@"`, 'sh'];

describe('a process with a low limit of open files', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  const connections = new RawConnections();
  after(() => bench.clean());
  afterEach(() => connections.closeAll());

  /** Sends a request on a new connection. */
  const newcomer = (url: string, path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<number> =>
    new Promise((resolve, reject) => {
      const sent = request(`${url}${path}`, { method, agent: false, headers }, (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode ?? 0));
      });
      sent.on('error', reject).end();
    });
  const limit = 1000;
  const attacks: readonly { readonly attack: string; readonly sent: string }[] = [
    { attack: 'silent connections', sent: '' },
    { attack: 'half-sent requests', sent: 'GET /metrics HTTP/1.1\r\nHost: x\r\nX-Half: ' },
  ];

  for (const { port, workers, most } of [
    { port: 'the API', workers: 0, most: 672 },
    { port: 'the API', workers: 1, most: 224 }, // a connection to a gateway may use three files
    { port: 'the telemetry', workers: 0, most: 672 },
    { port: 'the telemetry', workers: 1, most: 224 },
  ] as const) {
    for (const { attack, sent } of attacks) {
      it(`still writes and accepts new connections while ${attack} to ${port} with ${workers} gateways exceed the limit`, async () => {
        const server: LiveServer = await bench.start({
          dataDir: bench.folder(),
          wrapper: withOpenFiles(limit),
          env: { TRANSITD_WORKERS: String(workers) },
        });
        await server.log(new RegExp(`"openFiles":1000,"configured":4096,"connections":${most},.*limits.connections was lowered`));
        if (workers > 0) await server.log(/a gateway thread listens/);
        const telemetry = await telemetryOf(server);
        await until('it is active', async () => (await newcomer(server.url, '/v1/sys/health')) === 200);
        const token = { 'X-Service-Token': server.rootToken };
        const target = port === 'the API' ? server.url : telemetry;
        for (let made = 0; made < 1_500; made += 100)
          await Promise.all(Array.from({ length: 100 }, () => connections.open(target, sent)));
        for (let n = 0; n < 3; n += 1) {
          expect(await newcomer(server.url, `/v1/transit/keys/k${n}`, token, 'POST')).to.equal(200);
          expect(await newcomer(server.url, '/v1/sys/storage/raft/snapshot', token)).to.equal(200);
          expect(await newcomer(telemetry, '/metrics')).to.equal(200);
          expect(await newcomer(telemetry, '/v1/sys/health')).to.equal(200);
        }
        expect(server.child.exitCode).to.equal(null);
        expect(await figureOf(telemetry, 'svc_core_connections')).to.be.at.most(most);
        connections.closeAll();
        await server.stop();
      });
    }
  }

  it('closes half-sent requests to the telemetry listener as the API does', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    const socket = await connections.open(await telemetryOf(server), 'GET /metrics HTTP/1.1\r\nHost: x\r\nX-Half: ');
    const [answer]: unknown[] = await new Promise((resolve) => socket.once('data', (data) => resolve([data])));
    expect(String(answer)).to.match(/^HTTP\/1.1 408 /);
    await server.stop();
  });

  it('does not start if too few open files are left for its peers, and says which limit to raise', async () => {
    const folder = bench.folder();
    const file = join(folder, 'transitd.json');
    const config = {
      node_id: 'n1',
      data_dir: join(folder, 'data'),
      cluster_addr: '127.0.0.1:1',
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
    };
    writeFileSync(file, JSON.stringify(config));
    const server = bench.launch({ dataDir: folder, command: ['server', '--config', file], wrapper: withOpenFiles(1024) });
    expect((await server.exited).code).to.equal(1);
    expect(server.stderr).to.match(
      /may open 1024 files, and \d+ are reserved for storage and peers: raise the limit \(ulimit -n/,
    );
  });
});
