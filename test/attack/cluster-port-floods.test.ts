// @live
// Strangers flood the cluster port of a node, which leads at first. The cluster keeps serving, and the node releases everything that they
// used.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect } from 'chai';
import { LiveCluster } from '../cluster/harness/live-cluster.ts';
import type { LiveNode } from '../cluster/harness/live-node.ts';
import { scenarioMs } from '../cluster/harness/scenario.ts';
import { until } from '../cluster/harness/until.ts';
import { figureOf, RawConnections, telemetryOf } from './raw-connections.ts';

/** More than the limit of concurrent handshakes. */
const many = 600;
/** Tolerance, because the test itself and peers open and close connections. */
const spareDescriptors = 12;
const residentSlack = 64 * 1024 * 1024;
/** A TLS record that announces more bytes than are ever sent. */
const endlessRecord = '\x16\x03\x01\x3f\xff';
const raftUpgrade =
  'GET /cluster/raft HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: transitd.raft.1\r\n\r\n';

/** Returns the first bytes that a TLS client sends. */
async function clientHello(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connectTls({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }).on('error', () => undefined);
  const [socket] = (await once(server, 'connection')) as [Socket];
  const [hello] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return hello.toString('latin1');
}

describe('floods of the cluster port', function () {
  this.timeout(scenarioMs);
  const connections = new RawConnections();
  let cluster: LiveCluster;
  let flooded: LiveNode;
  let port = '';
  let telemetry = '';
  let hello = '';
  let elected = 0;
  let serial = 0;

  const logged = (message: string): number =>
    cluster.nodes.reduce((sum, { log }) => sum + log.split(`"msg":"${message}"`).length - 1, 0);
  /** Elections that no transfer asked for: a node that floods keep busy for half a minute transfers its leadership to a faster one. */
  const unasked = (): number => logged('this node was elected leader') - logged('this node transfers its leadership');
  const descriptors = (): number => readdirSync(`/proc/${flooded.server.child.pid}/fd`).length;
  const figure = (name: string): Promise<number> => figureOf(telemetry, name);

  before(async () => {
    // Memory that is not released ends a process soon.
    cluster = await LiveCluster.formed({ elections: 'never', env: () => ({ NODE_OPTIONS: '--max-old-space-size=150' }) });
    flooded = await cluster.settled();
    const address = /"address":"([^"]+)"[^\n]*"msg":"the cluster port is open"/.exec(flooded.log)?.[1];
    port = `tcp://${address}`;
    telemetry = await telemetryOf(flooded.server);
    hello = await clientHello();
    elected = unasked();
  });
  after(() => cluster?.end());

  /** Expects that the flooded node serves, perhaps after a moment, that all nodes are healthy, and that no leader was lost. */
  const expectUp = async (): Promise<void> => {
    const answer = await cluster.askWhenLed(flooded, 'POST', `transit/keys/k${serial++}`, {});
    expect(answer.status, answer.text).to.equal(200);
    await cluster.settled();
    expect(unasked(), 'elections that no transfer asked for').to.be.at.most(elected);
  };

  const open = (count: number, sent: string): Promise<Socket[]> =>
    Promise.all(Array.from({ length: count }, () => connections.open(port, sent)));

  /** Connects with TLS but without a certificate, sends `sent`, and ends the connection. Resolves when it is closed. */
  const overTls = async (sent: string, end: (socket: Socket, tls: Socket) => void): Promise<void> => {
    const { hostname: host, port: number } = new URL(port);
    const socket = connect({ host, port: Number(number) }).on('error', () => undefined);
    const tls = connectTls({ socket, rejectUnauthorized: false, minVersion: 'TLSv1.3' }).on('error', () => undefined);
    const closed = new Promise((resolve) => tls.on('close', resolve));
    await Promise.race([new Promise((resolve) => tls.once('secureConnect', resolve)), closed]);
    tls.resume().write(sent);
    end(socket, tls);
    await closed;
  };
  /** Expects that the node has closed all connections, even those that the other side keeps open. */
  const nothingStays = async (before: number): Promise<void> => {
    await until('no descriptor is left open', () => descriptors() <= before + spareDescriptors, {
      explain: () => `${descriptors()} now, ${before} before`,
    });
    connections.closeAll();
  };

  const stay = (): void => undefined;
  const leave = (socket: Socket): void => void socket.destroy();
  const reset = (socket: Socket): void => void socket.resetAndDestroy();
  const endTls = (_: Socket, tls: Socket): void => void tls.end();
  const halfClose = (socket: Socket): void => void socket.end();

  const bare: readonly { readonly attack: string; readonly sent: () => string; readonly next: (socket: Socket) => void }[] = [
    { attack: 'silent connections', sent: () => '', next: stay },
    { attack: 'silent connections that are half-closed', sent: () => '', next: halfClose },
    { attack: 'connections that are reset at once', sent: () => '', next: reset },
    { attack: 'garbage', sent: () => randomBytes(4_096).toString('latin1'), next: stay },
    { attack: 'garbage and a reset', sent: () => randomBytes(4_096).toString('latin1'), next: reset },
    { attack: 'HTTP without TLS', sent: () => raftUpgrade, next: stay },
    { attack: 'half a handshake', sent: () => hello.slice(0, hello.length / 2), next: stay },
    { attack: 'half a handshake, half-closed', sent: () => hello.slice(0, hello.length / 2), next: halfClose },
    { attack: 'half a handshake and a reset', sent: () => hello.slice(0, hello.length / 2), next: reset },
    { attack: 'handshakes that are never finished', sent: () => hello, next: stay },
    { attack: 'handshakes that are left', sent: () => hello, next: leave },
    { attack: 'handshakes that are half-closed', sent: () => hello, next: halfClose },
  ];
  for (const { attack, sent, next } of bare)
    it(`survives ${attack} and keeps nothing of them`, async () => {
      const before = descriptors();
      for (const socket of await open(many, sent())) next(socket);
      await expectUp();
      await nothingStays(before);
      await expectUp();
    });

  it('survives bytes that come one by one and keeps nothing of them', async () => {
    const before = descriptors();
    const sockets = await open(many, endlessRecord);
    await expectUp();
    await until('no descriptor is left open, while bytes go on coming', () => {
      for (const socket of sockets) if (socket.writable) socket.write('\x01');
      return descriptors() <= before + spareDescriptors;
    });
    connections.closeAll();
    await expectUp();
  });

  for (const { attack, sent, next } of [
    { attack: 'nothing else', sent: '', next: stay },
    { attack: 'CONNECT', sent: 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', next: stay },
    { attack: 'an upgrade to the messages of Raft', sent: raftUpgrade, next: stay },
    { attack: 'an upgrade and a reset', sent: raftUpgrade, next: reset },
    {
      attack: 'a request, half-closed',
      sent: 'POST /cluster/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n',
      next: endTls,
    },
  ])
    it(`survives handshakes without a certificate and ${attack}, and keeps nothing of them`, async () => {
      const before = descriptors();
      const flood = Array.from({ length: 100 }, () => overTls(sent, next));
      await expectUp();
      await Promise.all(flood);
      await nothingStays(before);
      await expectUp();
    });

  it('uses no more memory for many connections than for some', async () => {
    const flood = async (rounds: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        const handshakes = Array.from({ length: 100 }, () => overTls(raftUpgrade, reset));
        for (const socket of await open(300, hello)) reset(socket);
        await Promise.all(handshakes);
      }
    };
    await flood(5);
    const before = await figure('process_resident_memory_bytes');
    await flood(15);
    let last = 0;
    await until(
      'the memory is back where it was',
      async () => {
        last = await figure('process_resident_memory_bytes');
        return last <= before + residentSlack;
      },
      { explain: () => `${last} bytes, ${before} before` },
    );
    await expectUp();
    expect(cluster.nodes.every(({ alive }) => alive)).to.equal(true);
  });
});
