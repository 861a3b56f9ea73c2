// Prints how long sys/health waits, and how long the event loop is blocked, during a flood of pipelined requests.
//   node scripts/flood-delay.ts [connections] [requests on each]

import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LiveServer } from '../test/process/live-server.ts';

const [connections = 10, each = 100] = process.argv.slice(2).map(Number);
const folder = mkdtempSync(join(tmpdir(), 'transitd-flood-'));
const server = await new LiveServer({ dataDir: folder }).ready();
const { hostname, port } = new URL(server.url);
const telemetry = (await server.log(/"telemetry":"(http[^"]+)"/))[1] ?? '';
while ((await server.call('GET', 'sys/health', undefined, null)).status !== 200);
await server.call('POST', 'transit/keys/versions', {});
for (let n = 0; n < 100; n += 1) await server.call('POST', 'transit/keys/versions/rotate');
await server.call('POST', 'transit/keys/rsa', { type: 'rsa-4096' });

console.log(`${connections} connections, ${each} requests on each`);
for (const path of [
  'sys/internal/specs/openapi',
  'sys/metrics',
  'sys/metrics?format=prometheus',
  'transit/keys/versions',
  'transit/keys/rsa',
  'no/such/path',
]) {
  const head = `GET /v1/${path} HTTP/1.1\r\nHost: x\r\nX-Service-Token: ${server.rootToken}\r\n\r\n`;
  let answered = 0;
  const sockets = Array.from({ length: connections }, () => {
    const socket = connect(Number(port), hostname, () => socket.write(head.repeat(each))).on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      for (let at = chunk.indexOf('HTTP/1.1 '); at !== -1; at = chunk.indexOf('HTTP/1.1 ', at + 1)) answered += 1;
    });
    return socket;
  });
  const begun = performance.now();
  const waits: number[] = [];
  do {
    const asked = performance.now();
    await (await fetch(`${server.url}/v1/sys/health`)).text();
    waits.push(performance.now() - asked);
  } while (answered < connections * each && performance.now() - begun < 60_000);
  const page = await (await fetch(`${telemetry}/metrics`)).text();
  const lag = /^nodejs_eventloop_lag_max_seconds (\S+)/m.exec(page)?.[1];
  const sorted = waits.sort((a, b) => a - b);
  const at = (part: number): string => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1);
  console.log(
    `${path.padEnd(32)} ${answered} answers in ${(performance.now() - begun).toFixed(0)} ms; ` +
      `health ms: p50 ${at(0.5)}, max ${at(1)} of ${waits.length}; loop lag max ${(Number(lag) * 1000).toFixed(0)} ms`,
  );
  for (const socket of sockets) socket.destroy();
}
await server.stop();
rmSync(folder, { recursive: true, force: true });
