// @live
// Floods of small but expensive requests: other requests are served in between.
import { expect } from 'chai';
import { until } from '../cluster/harness/until.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { RawConnections, telemetryOf } from './raw-connections.ts';

const connectionsMax = 10;
const requestsEach = 100;

describe('a flood of pipelined requests', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  const connections = new RawConnections();
  let server: LiveServer;
  let telemetry = '';

  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
    telemetry = await telemetryOf(server);
    await until('it is active', async () => (await server.call('GET', 'sys/health', undefined, null)).status === 200);
    expect((await server.call('POST', 'transit/keys/versions', {})).status).to.equal(200);
    for (let n = 0; n < 50; n += 1) await server.call('POST', 'transit/keys/versions/rotate');
    expect((await server.call('POST', 'transit/keys/rsa', { type: 'rsa-2048' })).status).to.equal(200);
  });
  afterEach(() => connections.closeAll());
  after(() => bench.clean());

  for (const { what, path, to } of [
    { what: 'the OpenAPI document', path: '/v1/sys/internal/specs/openapi', to: 'api' },
    { what: 'metrics', path: '/v1/sys/metrics?format=prometheus', to: 'api' },
    { what: 'metrics as JSON', path: '/v1/sys/metrics', to: 'api' },
    { what: 'metrics at the telemetry listener', path: '/metrics', to: 'telemetry' },
    { what: 'a key with many versions', path: '/v1/transit/keys/versions', to: 'api' },
    { what: 'an RSA key', path: '/v1/transit/keys/rsa', to: 'api' },
    { what: 'unknown paths', path: '/v1/no/such/path', to: 'api' },
  ] as const) {
    it(`for ${what} does not hold up health, metrics and writes until it ends`, async () => {
      const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Service-Token: ${server.rootToken}\r\n\r\n`;
      const all = connectionsMax * requestsEach;
      // Repeated because this process may stall until the flood has ended.
      await until('the first probe is answered before the end of the flood', async () => {
        let answered = 0;
        const flood = async (): Promise<void> => {
          const socket = await connections.open(to === 'api' ? server.url : telemetry);
          socket.on('data', (chunk: Buffer) => {
            for (let at = chunk.indexOf('HTTP/1.1 '); at !== -1; at = chunk.indexOf('HTTP/1.1 ', at + 1)) answered += 1;
          });
          socket.write(head.repeat(requestsEach));
        };
        await Promise.all(Array.from({ length: connectionsMax }, flood));
        const before: number[] = [];
        for (const ask of [
          () => server.call('GET', 'sys/health', undefined, null),
          () => fetch(`${telemetry}/metrics`),
          () => server.call('POST', 'transit/keys/meanwhile', {}),
          () => server.call('GET', 'sys/health', undefined, null),
        ]) {
          expect((await ask()).status).to.equal(200);
          before.push(answered);
        }
        await until('the flood is answered', () => answered >= all);
        connections.closeAll();
        return (before[0] ?? all) < all;
      });
    });
  }
});
