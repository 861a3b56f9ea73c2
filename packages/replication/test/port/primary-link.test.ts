import { X509Certificate } from 'node:crypto';
import { createServer as createHttpsServer, request as httpsRequest } from 'node:https';
import { connect, createServer, type Socket } from 'node:net';
import { systemClock } from '@transitd/process';
import { expect } from 'chai';
import { type WebSocket, WebSocketServer } from 'ws';
import { fingerprintOf } from '../../../cluster/src/membership/certificate.ts';
import { until } from '../../../process/test/until.ts';
import { readActivationToken } from '../../src/port/activation-token.ts';
import type { PrimaryCredential } from '../../src/port/credential.ts';
import { openStream } from '../../src/port/primary-connection.ts';
import { PrimaryLink } from '../../src/port/primary-link.ts';
import type { SessionLimits } from '../../src/sessions/session-ports.ts';
import type { Frame } from '../../src/stream/frame.ts';
import { encodeFrame, frameBytesMax } from '../../src/stream/frame-codec.ts';
import { epochId, set, TestPrimary, TestSecondary, textsOf } from '../sessions/session-fixtures.ts';
import { TestSite, testLimits } from './replication-fixtures.ts';

const at = { number: 1, id: epochId, index: 10 };
const reconnect = { connectMsMax: 60_000, reconnectMsMin: 1, reconnectMsMax: 5 };
const filled = (count: number, bytes = 20): TestPrimary => {
  const primary = new TestPrimary({ bytesMax: 10_000_000, heldBytesMax: 20_000_000 });
  for (let at = 0; at < count; at++) primary.write(`transit/key-${at}`, `${at}`.padEnd(bytes, 'x'));
  return primary;
};

describe('the connection of a secondary to its primary', () => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  async function start(
    options: { nodes?: number; limits?: Partial<SessionLimits>; primary?: TestPrimary } = {},
  ): Promise<TestSite> {
    const site = await TestSite.start({ primary: new TestPrimary(), ...options });
    cleanups.push(() => site.stop());
    return site;
  }

  interface Linked {
    readonly secondary: TestSecondary;
    readonly link: PrimaryLink;
    readonly stops: string[];
    credential: PrimaryCredential;
  }

  function linkWith(
    credential: PrimaryCredential,
    more: { limits?: Partial<SessionLimits>; secondary?: TestSecondary } = {},
  ): Linked {
    const { secondary = new TestSecondary(), limits } = more;
    const stops: string[] = [];
    const linked = { secondary, stops, credential } as Linked & { link: PrimaryLink };
    linked.link = new PrimaryLink({
      ...{ cluster: secondary, reconnect, clock: systemClock },
      credentials: {
        get present() {
          return linked.credential;
        },
      },
      log: { info: () => undefined, error: ({ reason }: { reason: string }) => stops.push(reason) },
      limits: { ...testLimits, ...limits },
    });
    cleanups.push(() => linked.link.close());
    return linked;
  }

  const isEqual =
    (site: TestSite, { secondary }: Linked) =>
    (): boolean =>
      secondary.current?.index === site.primary.index;

  /** A proxy to a port of the site; `onBytes` sees the bytes that each connection has carried. */
  async function proxy(target: string, onBytes: (carried: number, cut: () => void, near: Socket) => void = () => undefined) {
    const sockets = new Set<Socket>();
    let connections = 0;
    const server = createServer((near) => {
      connections++;
      const far = connect({ host: '127.0.0.1', port: Number(target.split(':')[1]) });
      let carried = 0;
      const cut = (): void => {
        near.destroy();
        far.destroy();
      };
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(one);
        one.on('error', cut).on('close', cut);
        one.on('data', (bytes) => {
          carried += bytes.length;
          onBytes(carried, cut, near);
          if (!other.destroyed && !other.write(bytes)) {
            one.pause();
            other.once('drain', () => one.resume());
          }
        });
      }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    const bound = server.address();
    const address = `127.0.0.1:${typeof bound === 'object' && bound !== null ? bound.port : 0}`;
    return {
      address,
      connections: () => connections,
      cutAll: () => {
        for (const socket of sockets) socket.destroy();
      },
    };
  }

  it('brings the whole state, then what is written, and reports the lag', async () => {
    const site = await start({ primary: filled(300) });
    const linked = linkWith(await site.register());
    await until(isEqual(site, linked));
    for (let at = 0; at < 50; at++) site.primary.write('transit/hot', `${at}`);
    site.ports[0]?.progress();
    await until(isEqual(site, linked));
    expect(textsOf(linked.secondary.records)).to.deep.equal(textsOf(site.primary.records));
    await until(() => {
      const { connection, lag } = linked.link.status();
      return connection === 'connected' && lag.entries === 0 && lag.ms === 0;
    });
    await until(() => site.ports[0]?.connected[0]?.lag.entries === 0 && site.primary.answers.length > 0);
    await until(() => site.registrations[0]?.follows === true); // it goes on with its first state
    expect(linked.secondary.learned[0]).to.deep.equal(site.nodes);
  });

  it('resumes at the cursor after the connection was lost', async () => {
    const site = await start({ primary: filled(100) });
    const between = await proxy(site.addresses[0] ?? '');
    site.advertised = [between.address];
    const linked = linkWith(await site.register());
    await until(isEqual(site, linked));
    for (let round = 0; round < 3; round++) {
      const before = between.connections();
      between.cutAll();
      site.primary.write('transit/after', `${round}`);
      await until(() => between.connections() > before && isEqual(site, linked)());
    }
    expect(site.registrations[0]).to.deep.include({ secondary: 'east', follows: true });
    expect(linked.secondary.steps.filter(({ kind }) => kind === 'swap')).to.have.length(1);
    expect(textsOf(linked.secondary.records)).to.deep.equal(textsOf(site.primary.records));
  });

  it('ends with equal records if each connection is cut after a few more bytes than the one before', async () => {
    const site = await start({ primary: filled(150, 400), limits: { frameBytes: 4_000 } });
    let limit = 2_000;
    const between = await proxy(site.addresses[0] ?? '', (carried, cut) => {
      if (carried < limit) return;
      limit += 2_500;
      site.primary.write(`transit/cut-${limit}`, 'written while the connection is cut');
      cut();
    });
    const credential = await site.register();
    const linked = linkWith({ ...credential, addresses: [between.address] }, { limits: { frameBytes: 4_000 } });
    linked.secondary.nodes = () => undefined;
    await until(isEqual(site, linked));
    expect(between.connections()).to.be.above(10);
    expect(textsOf(linked.secondary.records)).to.deep.equal(textsOf(site.primary.records));
    await until(() => site.primary.openReaders === 0);
  });

  it('finds the active node, also when it changes', async () => {
    const site = await start({ nodes: 3, primary: filled(10) });
    const credential = await site.register();
    site.active = 1;
    const linked = linkWith({ ...credential, addresses: site.addresses.slice(0, 1) });
    await until(isEqual(site, linked));
    expect(linked.link.status().address).to.equal(site.addresses[1]);
    site.active = 2;
    site.ports[1]?.disconnect();
    site.primary.write('transit/next', 'of the next active node');
    await until(() => isEqual(site, linked)() && linked.link.status().address === site.addresses[2]);
  });

  it('is cut when the secondary is revoked, and learns why', async () => {
    const site = await start({ primary: filled(10) });
    const [linked, other] = [linkWith(await site.register()), linkWith(await site.register('west'))];
    await until(() => isEqual(site, linked)() && isEqual(site, other)());
    await site.desk.revoke('east');
    expect(site.ports[0]?.connected.map(({ secondary }) => secondary)).to.deep.equal(['west']);
    await until(() => linked.link.status().reason?.includes('revoked') === true);
    site.primary.write('transit/secret', 'after the revocation');
    site.ports[0]?.progress();
    await until(isEqual(site, other));
    expect(linked.secondary.records.has('transit/secret')).to.equal(false);
  });

  it('is cut when the certificate is replaced by that of a new token', async () => {
    const site = await start({ primary: filled(10) });
    const linked = linkWith(await site.register());
    await until(isEqual(site, linked));
    const next = await site.register();
    await until(() => linked.link.status().reason?.includes('replaced') === true);
    linked.credential = next;
    site.primary.write('transit/next', 'x');
    await until(isEqual(site, linked));
  });

  it('is one for each secondary: the newest', async () => {
    const site = await start({ primary: filled(10) });
    const credential = await site.register();
    const first = linkWith(credential);
    await until(isEqual(site, first));
    const second = linkWith(credential);
    await until(() => isEqual(site, second)() && first.link.status().reason !== undefined);
    first.link.close();
    await until(() => site.ports[0]?.connected.length === 1);
    site.primary.write('transit/next', 'x');
    await until(isEqual(site, second));
  });

  it('is not attempted again once the link was closed, while it connects or while it waits', async () => {
    const site = await start();
    const credential = { ...(await site.register()), addresses: ['127.0.0.1:1'] };
    const open = () => {
      const counted = { reads: 0 };
      const link = new PrimaryLink({
        ...{ cluster: new TestSecondary(), reconnect, clock: systemClock, limits: testLimits },
        credentials: {
          get present() {
            counted.reads++;
            return credential;
          },
        },
        log: { info: () => undefined, error: () => undefined },
      });
      cleanups.push(() => link.close());
      return { counted, link };
    };
    const connecting = open();
    connecting.link.close();
    const waiting = open();
    await until(() => waiting.link.status().reason !== undefined);
    waiting.link.close();
    const reads = [connecting.counted.reads, waiting.counted.reads];
    const other = open();
    await until(() => other.counted.reads > 40);
    expect([connecting.counted.reads, waiting.counted.reads]).to.deep.equal(reads);
    expect(connecting.link.status().reason, 'the end of an attempt after the end of the link').to.equal(undefined);
  });

  it('stops for good when the digests differ', async () => {
    const site = await start({ primary: filled(10) });
    const linked = linkWith(await site.register());
    await until(isEqual(site, linked));
    linked.secondary.records.delete('transit/key-3');
    await until(() => linked.stops.length > 0);
    expect(linked.stops).to.deep.equal(['digest_differs']);
    expect(linked.link.status().connection).to.equal('stopped');
  });

  it('brings everything to a secondary that stood still while much was written', async () => {
    const primary = filled(1);
    const limits = { frameBytes: 64 * 1024, framesMax: 4, unsentBytesMax: 256 * 1024 };
    const site = await start({ primary, limits });
    const linked = linkWith(await site.register(), { limits });
    await until(isEqual(site, linked));
    let commit: (() => void) | undefined;
    linked.secondary.commit = () => new Promise((resolve) => (commit = () => resolve('committed')));
    for (let at = 0; at < 3_000; at++) primary.write(`transit/k-${at}`, 'x'.repeat(1_000));
    site.ports[0]?.progress();
    await until(() => commit !== undefined && (site.ports[0]?.connected[0]?.lag.entries ?? 0) >= 3_000);
    linked.secondary.commit = async () => 'committed';
    commit?.();
    await until(isEqual(site, linked));
    expect(textsOf(linked.secondary.records)).to.deep.equal(textsOf(primary.records));
  });

  /** Opens a stream without the client's own rules; resolves with the frames to send once it is open. */
  async function stream(site: TestSite, credential: PrimaryCredential): Promise<{ socket: WebSocket; received: number[] }> {
    const received: number[] = [];
    const socket = openStream({ address: site.addresses[0] ?? '', credential, connectMsMax: 60_000 }, () => undefined);
    socket.on('message', (bytes: Buffer) => received.push(bytes.length)).on('error', () => undefined);
    cleanups.push(() => socket.terminate());
    await new Promise((resolve) => socket.on('open', resolve));
    return { socket, received };
  }

  it('carries no more than the window to a secondary that acknowledges nothing', async () => {
    const limits = { frameBytes: 64 * 1024, framesMax: 4 };
    const site = await start({ primary: filled(3), limits });
    const { socket, received } = await stream(site, await site.register());
    socket.send(encodeFrame({ kind: 'hello', set, cursor: { ...at, index: 13 }, wantsWholeState: false, level: 3 }));
    await until(() => received.length > 0);
    for (let written = 0; written < 3_000; written++) site.primary.write(`transit/k-${written}`, 'x'.repeat(1_000));
    for (let round = 0; round < 10; round++) {
      const heartbeats = received.length;
      site.ports[0]?.progress();
      await until(() => received.length > heartbeats);
    }
    const large = received.filter((bytes) => bytes > 10_000);
    expect(large).to.have.length(limits.framesMax);
    expect(Math.max(...large)).to.be.at.most(limits.frameBytes);
  });

  const hello = encodeFrame({ kind: 'hello', set, cursor: undefined, wantsWholeState: false, level: 3 });
  const outOfOrder: readonly Frame[] = [
    { kind: 'ack', at, echoMs: undefined },
    { kind: 'welcome', epochs: [{ number: 1, id: epochId, start: 10 }] },
  ];
  for (const [what, frames] of [
    ['a frame that is too large', [Buffer.alloc(64 * 1024 + 1)]],
    ['bytes that are no frame', [Buffer.from('hello')]],
    ['text', ['hello']],
    ['an acknowledgement before the hello', [encodeFrame(outOfOrder[0] as Frame)]],
    ['a frame of the primary', [encodeFrame(outOfOrder[1] as Frame)]],
    ['a second hello', [hello, hello]],
  ] as const)
    it(`ends at ${what}, and the primary serves the next one`, async () => {
      const site = await start({ primary: filled(3) });
      const credential = await site.register();
      const { socket } = await stream(site, credential);
      for (const frame of frames) socket.send(frame);
      await new Promise((resolve) => socket.on('close', resolve));
      expect(site.primary.openReaders).to.equal(0);
      const linked = linkWith(credential);
      await until(isEqual(site, linked));
    });

  it('ends when no hello comes, and gets nothing before', async () => {
    const site = await start({ primary: filled(3), limits: { silentMsMax: 300 } });
    const { socket, received } = await stream(site, await site.register());
    await new Promise((resolve) => socket.on('close', resolve));
    expect(received).to.deep.equal([]);
  });

  it('does not read a frame that is larger than any, even of the primary', async () => {
    const site = await start();
    const credential = await site.register();
    const { identity } = await site.cluster.node(1);
    const server = createHttpsServer({ key: identity.key, cert: identity.certificate });
    const upgrades = new WebSocketServer({ server, handleProtocols: () => 'transitd.replication.1' });
    upgrades.on('connection', (socket) => socket.on('error', () => undefined).send(Buffer.alloc(frameBytesMax + 1)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    cleanups.push(() => server.close());
    const bound = server.address();
    const address = `127.0.0.1:${typeof bound === 'object' && bound !== null ? bound.port : 0}`;
    const linked = linkWith({ ...credential, addresses: [address] });
    await until(() => linked.link.status().reason !== undefined);
    linked.credential = credential;
    await until(isEqual(site, linked));
  });

  const askedWith = (
    site: TestSite,
    credential: PrimaryCredential,
    method: string,
    path: string,
    upgrade?: string,
  ): Promise<number | 'cut'> =>
    new Promise((resolve) => {
      const [host = '', port = ''] = (site.addresses[0] ?? '').split(':');
      const websocket = upgrade !== undefined && {
        ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
        ...{ 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==', 'Sec-WebSocket-Protocol': upgrade },
      };
      const req = httpsRequest({
        ...{
          host,
          port,
          method,
          path,
          agent: false,
          rejectUnauthorized: false,
          key: credential.key,
          cert: credential.certificate,
        },
        headers: { 'X-Transitd-Run': `7.${'a'.repeat(32)}`, ...websocket },
      });
      req.on('upgrade', (res, socket) => {
        socket.destroy();
        resolve(res.statusCode ?? 0);
      });
      req
        .on('response', (res) => resolve(res.resume().statusCode ?? 0))
        .on('error', () => resolve('cut'))
        .end();
    });

  it('gives a secondary none of the calls of members, even if a membership list named its certificate', async () => {
    const site = await start();
    const credential = await site.register();
    site.members.set(fingerprintOf(new X509Certificate(credential.certificate)), { id: 1, memberState: 'member' });
    for (const [method, path, upgrade] of [
      ['POST', '/cluster/echo'],
      ['GET', '/cluster/snapshot'],
      ['GET', '/v1/sys/health'],
      ['GET', '/cluster/raft', 'transitd.raft.1'],
      ['GET', '/cluster/replication/other', 'transitd.replication.1'],
    ] as const)
      expect(await askedWith(site, credential, method, path, upgrade), path).to.be.oneOf([403, 404]);
    expect(site.handled).to.deep.equal([]);
    expect(await askedWith(site, credential, 'GET', '/cluster/replication/stream', 'transitd.replication.9')).to.equal(426);
    await site.desk.revoke('east');
    expect(await askedWith(site, credential, 'POST', '/cluster/echo')).to.equal(410);
    expect(await askedWith(site, credential, 'GET', '/cluster/replication/stream', 'transitd.replication.1')).to.equal(410);
    expect(site.handled).to.deep.equal([]);
  });

  it('gives neither a member nor a stranger the stream, and a token no more than the activation', async () => {
    const site = await start();
    const member = await site.cluster.node(7);
    site.members.set(member.certificate, { id: 7, memberState: 'member' });
    const as = ({ key, certificate }: Pick<PrimaryCredential, 'key' | 'certificate'>) =>
      ({ key, certificate }) as PrimaryCredential;
    expect(await askedWith(site, as(member.identity), 'GET', '/cluster/replication/stream', 'transitd.replication.1')).to.equal(
      404,
    );
    const stranger = await site.cluster.node(8);
    expect(await askedWith(site, as(stranger.identity), 'GET', '/cluster/replication/stream', 'transitd.replication.1')).to.equal(
      'cut',
    );
    const token = await readActivationToken(await site.desk.issueToken({ secondary: 'east' }));
    expect(await askedWith(site, token, 'GET', '/cluster/replication/stream', 'transitd.replication.1')).to.equal(403);
  });
});
