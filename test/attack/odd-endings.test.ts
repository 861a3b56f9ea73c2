// @live
// Connections that end in unusual ways release everything that they held.
import { existsSync, readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { figureOf, RawConnections, telemetryOf } from './raw-connections.ts';

describe('connections that end in unusual ways', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  const connections = new RawConnections();
  let server: LiveServer;
  let telemetry = '';
  let folder = '';

  before(async () => {
    folder = bench.folder();
    // A leak ends this process soon: it may use only 150 MB of memory.
    server = await bench.start({ dataDir: folder, env: { NODE_OPTIONS: '--max-old-space-size=150' } });
    telemetry = await telemetryOf(server);
    await until('it is active', async () => (await server.call('GET', 'sys/health', undefined, null)).status === 200);
    expect((await server.call('POST', 'transit/keys/k', {})).status).to.equal(200);
  });
  after(() => bench.clean());

  const figures = async (): Promise<Record<string, number>> => ({
    inFlight: await figureOf(telemetry, 'svc_core_in_flight_requests'),
    bodyBytes: await figureOf(telemetry, 'svc_core_body_bytes'),
    reads: await figureOf(telemetry, 'svc_core_requests_executing{kind="reads"}'),
    changes: await figureOf(telemetry, 'svc_core_requests_executing{kind="changes"}'),
    waiting: await figureOf(telemetry, 'svc_core_requests_waiting{kind="reads"}'),
    transfers: existsSync(join(folder, 'transfers')) ? readdirSync(join(folder, 'transfers')).length : 0,
  });
  const descriptors = (): number => readdirSync(`/proc/${server.child.pid}/fd`).length;
  const idle = { inFlight: 0, bodyBytes: 0, reads: 0, changes: 0, waiting: 0, transfers: 0 };

  const head = (line: string, more = ''): string =>
    `${line} HTTP/1.1\r\nHost: x\r\nX-Service-Token: ${server.rootToken}\r\n${more}\r\n`;
  const large = (): string => {
    const body = JSON.stringify({ plaintext: 'A'.repeat(200_000) });
    return `${head('POST /v1/transit/encrypt/k', `Content-Length: ${body.length}\r\n`)}${body}`;
  };
  const backup = (): string => head('GET /v1/sys/storage/raft/snapshot');
  const requests = (): string => head('GET /v1/transit/keys/k').repeat(20) + large() + backup() + large() + backup() + backup();

  const leave = (socket: Socket): void => void socket.destroy();
  const reset = (socket: Socket): void => void socket.resetAndDestroy();
  const halfClose = (socket: Socket): void => void socket.end();
  for (const { ending, sent, next } of [
    { ending: 'CONNECT', sent: () => 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', next: leave },
    { ending: 'CONNECT and a reset', sent: () => 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', next: reset },
    { ending: 'an Upgrade request', sent: () => head('GET /v1/x', 'Connection: Upgrade\r\nUpgrade: h2c\r\n'), next: leave },
    { ending: 'the preface of HTTP/2', sent: () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', next: leave },
    { ending: 'garbage', sent: () => '\x16\x03\x01\0\0', next: leave },
    { ending: 'garbage and a reset', sent: () => 'GARBAGE\r\n\r\n', next: reset },
    { ending: 'half a body', sent: () => large().slice(0, 150_000), next: reset },
    {
      ending: 'a LIST followed by CONNECT',
      sent: () => `${head('LIST /v1/transit/keys')}CONNECT x HTTP/1.1\r\n\r\n`,
      next: leave,
    },
    { ending: 'a half-close', sent: () => '', next: halfClose },
    { ending: 'a reset', sent: () => '', next: reset },
  ]) {
    it(`release everything when pipelined requests end with ${ending}`, async () => {
      await until('nothing is under way', async () => JSON.stringify(await figures()) === JSON.stringify(idle));
      const before = descriptors();
      for (let round = 0; round < 3; round += 1) {
        const open = await Promise.all(Array.from({ length: 8 }, () => connections.open(server.url, requests() + sent())));
        for (const socket of open) next(socket);
      }
      await until('all of it has ended', async () => JSON.stringify(await figures()) === JSON.stringify(idle), {
        explain: () => `${connections.size} connections are open`,
      });
      await until('no descriptor is left open', () => descriptors() <= before + 2);
      connections.closeAll();
      expect((await server.call('GET', 'sys/storage/raft/snapshot')).status).to.equal(200);
    });
  }

  it('use no memory, however many there are', async () => {
    const pipelined = 'GET /v1/transit/keys/k HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000);
    for (let round = 0; round < 60; round += 1) {
      const socket = await connections.open(server.url, `${pipelined}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
      reset(socket);
    }
    await until('all of it has ended', async () => JSON.stringify(await figures()) === JSON.stringify(idle));
    expect(server.child.exitCode).to.equal(null);
  });

  it('are closed after the response time limit if the caller does not read the answer to CONNECT', async () => {
    const { hostname, port } = new URL(server.url);
    const open = Array.from({ length: 8 }, () => {
      const socket = connect({ host: hostname, port: Number(port) }).on('error', () => undefined);
      socket.pause().write(`${head('GET /v1/transit/keys/k').repeat(200)}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`);
      return socket;
    });
    await until('all is answered', async () => (await figures())['inFlight'] === 0);
    for (const socket of open) socket.destroy();
    expect((await server.call('GET', 'sys/storage/raft/snapshot')).status).to.equal(200);
  });
});
