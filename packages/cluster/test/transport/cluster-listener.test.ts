// @live
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { RequestError } from '@transitd/http';
import '../../src/membership/reflect-metadata.ts'; // the library below needs it
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';
import { expect } from 'chai';
import type { WebSocket } from 'ws';
import { until } from '../../../process/test/until.ts';
import { fingerprintOf } from '../../src/membership/certificate.ts';
import type { NodeIdentity } from '../../src/membership/identity.ts';
import type { ListedNode } from '../../src/membership/membership.ts';
import { Callers } from '../../src/transport/callers.ts';
import type { ClusterHandler } from '../../src/transport/cluster-call.ts';
import { ClusterListener, type ClusterListenerOptions } from '../../src/transport/cluster-listener.ts';
import { clusterId, type TestCluster, type TestNode, testCluster } from '../credentials.ts';

/** Every kind of call on the port. */
const everyCall = [
  'GET /cluster/raft',
  'POST /cluster/echo',
  'POST /cluster/confirm',
  'GET /cluster/snapshot',
  'POST /cluster/renew',
  'POST /v1/transit/encrypt/key',
  'GET /cluster/nothing',
] as const;

const runText = `7.${'a'.repeat(32)}`;

type Shown = Pick<NodeIdentity, 'key' | 'certificate'> | undefined;

interface Answered {
  readonly status: number;
  readonly body: string;
}

/** Makes one call on its own connection; returns `cut` when that ended without an answer. */
function call(
  port: number,
  shown: Shown,
  asked: string,
  { body = '', socket, run = runText }: { readonly body?: string; readonly socket?: TLSSocket; readonly run?: string } = {},
): Promise<Answered | 'cut'> {
  const [method, path] = asked.split(' ');
  return new Promise((resolve) => {
    const upgrade = path === '/cluster/raft' && {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      'Sec-WebSocket-Protocol': 'transitd.raft.1',
    };
    const headers = {
      'X-Transitd-Run': run,
      ...upgrade,
      ...(method === 'POST' && { 'Content-Length': Buffer.byteLength(body) }),
    };
    const local = { key: shown?.key, cert: shown?.certificate, rejectUnauthorized: false, agent: false };
    const given = socket === undefined ? {} : { createConnection: () => socket, agent: undefined };
    const req = httpsRequest({ host: '127.0.0.1', port, method, path, headers, ...local, ...given });
    req.on('error', () => resolve('cut'));
    req.on('upgrade', (res, upgraded) => {
      upgraded.destroy();
      resolve({ status: res.statusCode ?? 0, body: '' });
    });
    req.on('response', async (res) => {
      const chunks: Buffer[] = [];
      try {
        for await (const chunk of res) chunks.push(chunk);
        resolve({ status: res.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
      } catch {
        resolve('cut');
      }
    });
    req.end(body);
  });
}

const connected = (port: number, shown: Shown): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const local = { key: shown?.key, cert: shown?.certificate, rejectUnauthorized: false };
    const socket = tlsConnect({ host: '127.0.0.1', port, ...local }, () => resolve(socket)).once('error', reject);
  });

const asksByHeartbeat = `POST /cluster/echo HTTP/1.1\r\nHost: x\r\nX-Transitd-Run: ${runText}\r\n`;

const asksForRaft =
  'GET /cluster/raft HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: transitd.raft.1\r\n' +
  `X-Transitd-Run: ${runText}\r\n\r\n`;

describe('the cluster port', () => {
  let cluster: TestCluster;
  let server: TestNode;
  let member: TestNode;
  before(async () => {
    cluster = await testCluster();
    [server, member] = await Promise.all([cluster.node(1), cluster.node(2)]);
  });

  let listed: Map<string, ListedNode>;
  let handled: string[];
  let faults: unknown[];
  let raft: WebSocket[];
  let listener: ClusterListener;
  let port: number;

  const list = (certificate: string, id: number, memberState: ListedNode['memberState'] = 'member'): void =>
    void listed.set(certificate, { id, memberState });

  const accept = (socket: WebSocket, from: number): void => {
    handled.push(`raft of ${from}`);
    raft.push(socket);
  };

  async function start(more: Partial<ClusterListenerOptions> = {}): Promise<void> {
    const answering =
      (name: string): ClusterHandler =>
      async ({ from, body }) => {
        handled.push(`${name} of ${from}`);
        return { status: 200, json: { said: body.toString() } };
      };
    listener = new ClusterListener({
      members: { requireIdentity: () => server.identity, memberState: (fingerprint) => listed.get(fingerprint) },
      calls: {
        'POST /cluster/echo': answering('heartbeat'),
        'POST /cluster/confirm': answering('confirm'),
        'POST /cluster/renew': answering('renew'),
        'GET /cluster/snapshot': async ({ from, query }) => {
          handled.push(`snapshot of ${from}`);
          return {
            stream: (async function* () {
              yield Buffer.from(`records above ${query.get('above')}`);
            })(),
          };
        },
      },
      forwarded: {
        handle: (req, res, from) => {
          handled.push(`forwarded by ${from}`);
          req.resume().on('end', () => res.end('{}'));
        },
      },
      raft: { accept, judge: () => 'in order' },
      onFault: (error) => faults.push(error),
      checkMs: 10,
      ...more,
    });
    port = await listener.listen({ host: '127.0.0.1', port: 0 });
  }

  beforeEach(() => {
    listed = new Map([[member.certificate, { id: 2, memberState: 'member' }]]);
    [handled, faults, raft] = [[], [], []];
  });
  afterEach(async () => {
    await listener.close();
    expect(faults).to.deep.equal([]);
  });

  describe('admission', () => {
    /** Signed by our own authority, but with a common name that is not the URI's. */
    async function disagreeing(subject: number, uri: number): Promise<TestNode> {
      const { authority } = cluster;
      const algorithm = { name: 'ECDSA', namedCurve: 'P-256' } as const;
      const der = Buffer.from(authority.key.replace(/-----[^-]+-----/g, ''), 'base64');
      const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
      const made = await X509CertificateGenerator.create({
        subject: `CN=${subject}`,
        issuer: `CN=transitd ${clusterId}`,
        signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
        signingKey: await crypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']),
        publicKey: keys.publicKey,
        extensions: [new SubjectAlternativeNameExtension([{ type: 'url', value: `transitd:${clusterId}/${uri}` }])],
      });
      const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
      const identity = {
        key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----`,
        certificate: made.toString('pem'),
        authority: authority.certificate,
        membersAtJoin: [],
      };
      return { id: subject, identity, certificate: fingerprintOf(new X509Certificate(identity.certificate)) };
    }
    const yearAgo = new Date(Date.now() - 400 * 24 * 3_600_000);

    for (const { who, make, memberState, outcome } of [
      { who: 'a stranger without certificate', make: async () => undefined, outcome: 'cut' },
      {
        who: 'a node of a foreign authority',
        make: async () => (await testCluster()).node(2),
        memberState: 'member',
        outcome: 'cut',
      },
      {
        who: 'a node of another cluster',
        make: () => cluster.node(2, { clusterId: 'abc' }),
        memberState: 'member',
        outcome: 'cut',
      },
      { who: 'a node that is not listed', make: () => cluster.node(2), outcome: 'cut' },
      { who: 'a node with another’s id', make: () => cluster.node(3), memberState: 'member', outcome: 'cut' },
      { who: 'a node with another’s common name', make: () => disagreeing(3, 2), memberState: 'member', outcome: 'cut' },
      { who: 'a node with another’s URI', make: () => disagreeing(2, 3), memberState: 'member', outcome: 'cut' },
      { who: 'a removed node', make: () => cluster.node(2), memberState: 'removed', outcome: 'told' },
      {
        who: 'a listed node whose certificate has expired',
        make: () => cluster.node(2, { now: yearAgo }),
        memberState: 'member',
        outcome: 'served',
      },
      { who: 'a listed node', make: async () => member, memberState: 'member', outcome: 'served' },
    ] as const)
      for (const asked of everyCall)
        it(`${who} is ${outcome}: ${asked}`, async () => {
          await start();
          const node = await make();
          if (node !== undefined && memberState !== undefined) list(node.certificate, 2, memberState);
          const answer = await call(port, node?.identity, asked);
          if (outcome === 'cut') expect(answer).to.equal('cut');
          if (outcome === 'told') expect(answer).to.deep.equal({ status: 410, body: '{"removed":true}\n' });
          if (outcome === 'served') {
            const expected = asked === 'GET /cluster/raft' ? 101 : asked === 'GET /cluster/nothing' ? 404 : 200;
            expect(answer).to.include({ status: expected });
          }
          expect(handled.length).to.equal(outcome === 'served' && asked !== 'GET /cluster/nothing' ? 1 : 0);
        });

    for (const { what, open } of [
      { what: 'no call', open: [] },
      { what: 'only the calls that are open to it', open: ['POST /cluster/echo'] },
    ])
      it(`allows an unlisted node of this cluster ${what}`, async () => {
        const refused: (number | undefined)[] = [];
        await start({ unlisted: { calls: open }, onRefused: ({ from }) => refused.push(from) });
        const stranger = await cluster.node(2);
        for (const asked of everyCall) {
          const answer = await call(port, stranger.identity, asked);
          if (open.includes(asked)) expect(answer, asked).to.include({ status: 200 });
          else expect(answer, asked).to.equal('cut');
        }
        expect(handled).to.deep.equal(open.map(() => 'heartbeat of 2'));
        if (open.length === 0) expect(refused).to.deep.equal(everyCall.map(() => 2));
        const foreign = await (await testCluster()).node(2);
        expect(await call(port, foreign.identity, 'POST /cluster/echo')).to.equal('cut');
      });

    it('accepts listed nodes of each trusted authority, and of no other', async () => {
      const [former, next] = [cluster, await testCluster()];
      const [ofFormer, ofNext] = [await former.node(2), await next.node(3)];
      let trusted = [former, next];
      await start({
        members: {
          requireIdentity: () => server.identity,
          memberState: (fingerprint) => listed.get(fingerprint),
          get authorities() {
            return trusted.map(({ authority }) => new X509Certificate(authority.certificate));
          },
        },
      });
      list(ofFormer.certificate, 2, 'member');
      list(ofNext.certificate, 3, 'member');
      const answers = async () => [
        await call(port, ofFormer.identity, 'POST /cluster/echo'),
        await call(port, ofNext.identity, 'POST /cluster/echo'),
      ];
      const [one, other] = await answers();
      expect(one).to.include({ status: 200 });
      expect(other).to.include({ status: 200 });
      trusted = [next];
      const [dropped, kept] = await answers();
      expect(dropped).to.equal('cut');
      expect(kept).to.include({ status: 200 });
    });

    it('accepts at most eight connections of unlisted nodes', async () => {
      await start({ unlisted: { calls: ['POST /cluster/echo'] }, checkMs: 60_000 });
      const stranger = await cluster.node(2);
      const sockets: TLSSocket[] = [];
      for (let i = 0; i < 8; i++) sockets.push(await connected(port, stranger.identity));
      const ninth = await connected(port, stranger.identity);
      await once(ninth.resume(), 'close');
      expect(sockets.some((socket) => socket.destroyed)).to.equal(false);
      expect(await call(port, member.identity, 'POST /cluster/echo'), 'a member').to.include({ status: 200 });
      for (const socket of sockets) socket.destroy();
    });

    it('refuses a resumed session, which shows no certificate', async () => {
      await start();
      const first = await connected(port, member.identity);
      const [session] = (await once(first, 'session')) as [Buffer];
      const { key, certificate: cert } = member.identity;
      const socket = tlsConnect({ host: '127.0.0.1', port, key, cert, session, rejectUnauthorized: false });
      await once(socket, 'secureConnect');
      expect(socket.isSessionReused(), 'the attempt').to.equal(true);
      expect(await call(port, undefined, 'POST /cluster/echo', { socket })).to.equal('cut');
      first.destroy();
    });

    it('refuses TLS 1.2', async () => {
      await start();
      const { key, certificate: cert } = member.identity;
      const ended = new Promise((resolve) => {
        tlsConnect({ host: '127.0.0.1', port, key, cert, rejectUnauthorized: false, maxVersion: 'TLSv1.2' })
          .once('secureConnect', () => resolve('connected'))
          .once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
      });
      expect(await ended).to.equal('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
    });
  });

  describe('on a kept connection', () => {
    it('checks at every call whether the caller is still a member', async () => {
      await start({ checkMs: 60_000 });
      const { key, certificate: cert } = member.identity;
      const socket = await connected(port, { key, certificate: cert });
      const said: string[] = [];
      socket.on('data', (chunk: Buffer) => said.push(chunk.toString('latin1')));
      const ask = (): void => void socket.write(`${asksByHeartbeat}Content-Length: 0\r\n\r\n`);
      ask();
      await until(() => said.join('').includes('{"said":""}'));
      list(member.certificate, 2, 'removed');
      ask();
      await until(() => said.join('').includes('HTTP/1.1 410 Gone') && said.join('').includes('{"removed":true}'));
      listed.delete(member.certificate);
      ask();
      await until(() => socket.destroyed);
      expect(handled).to.deep.equal(['heartbeat of 2']);
    });

    it('checks again after the body has arrived', async () => {
      await start({ checkMs: 60_000 });
      const socket = await connected(port, member.identity);
      let said = '';
      socket.on('data', (chunk: Buffer) => {
        said += chunk.toString('latin1');
      });
      socket.write(`${asksByHeartbeat}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n`);
      await until(() => said.includes('100 Continue'));
      list(member.certificate, 2, 'removed');
      socket.write('{}');
      await until(() => said.includes('410 Gone'));
      socket.destroy();
      expect(handled).to.deep.equal([]);
    });

    it('cuts an idle unknown node at the next check', async () => {
      await start();
      const socket = await connected(port, member.identity);
      await call(port, member.identity, 'POST /cluster/echo'); // the port has seen both
      listed.delete(member.certificate);
      socket.resume();
      await until(() => socket.destroyed);
    });

    for (const [what, change] of [
      ['removed', () => list(member.certificate, 2, 'removed')],
      ['forgotten', () => void listed.delete(member.certificate)],
    ] as const) {
      it(`ends Raft’s messages at the next check when the peer was ${what}`, async () => {
        await start();
        const socket = await connected(port, member.identity);
        socket.resume().write(asksForRaft);
        await until(() => raft.length === 1);
        change();
        await until(() => socket.destroyed);
      });

      it(`ends a snapshot at the next check when the peer was ${what}`, async () => {
        let [begun, ended] = [false, false];
        const endless = async function* (): AsyncGenerator<Buffer> {
          try {
            for (;;) {
              begun = true;
              yield Buffer.alloc(1000);
              await new Promise((resolve) => setImmediate(resolve));
            }
          } finally {
            ended = true;
          }
        };
        await start({ calls: { 'GET /cluster/snapshot': async () => ({ stream: endless() }) } });
        const answer = call(port, member.identity, 'GET /cluster/snapshot');
        await until(() => begun);
        change();
        expect(await answer).to.equal('cut');
        await until(() => ended);
      });
    }

    it('finishes an answer in flight, which may be the answer to the removal request', async () => {
      let answer: (() => void) | undefined;
      await start({
        forwarded: {
          handle: (_req, res) => {
            answer = () => void res.end('{"done":true}');
          },
        },
      });
      const answered = call(port, member.identity, 'POST /v1/sys/storage/raft/remove-peer');
      await until(() => answer !== undefined);
      listed.delete(member.certificate);
      listener.recheck();
      answer?.();
      expect(await answered).to.deep.equal({ status: 200, body: '{"done":true}' });
    });
  });

  describe('judges the incarnation of a member', () => {
    for (const [verdict, connects, calls] of [
      ['in order', 101, 200],
      ['early', 503, 421],
      ['overtaken', 409, 421],
    ] as const)
      it(`${verdict}: ${connects} to a connection for Raft’s messages, ${calls} to calls`, async () => {
        list(member.certificate, 2);
        const judged: unknown[] = [];
        await start({
          raft: {
            accept,
            judge: (...named) => {
              judged.push(named);
              return verdict;
            },
          },
        });
        expect(await call(port, member.identity, 'GET /cluster/raft')).to.have.property('status', connects);
        expect(await call(port, member.identity, 'POST /cluster/echo')).to.have.property('status', calls);
        expect(await call(port, member.identity, 'GET /v1/sys/seal-status')).to.have.property('status', calls);
        expect(judged).to.deep.equal(new Array(3).fill([2, { number: 7, nonce: 'a'.repeat(32) }]));
        expect(handled).to.deep.equal(verdict === 'in order' ? ['raft of 2', 'heartbeat of 2', 'forwarded by 2'] : []);
      });

    for (const asked of ['GET /cluster/raft', 'POST /cluster/echo', 'POST /v1/transit/encrypt/key'])
      it(`answers ${asked} without an incarnation with 400`, async () => {
        list(member.certificate, 2);
        await start({ raft: { accept, judge: () => expect.fail('judged a missing incarnation') } });
        expect(await call(port, member.identity, asked, { run: '7' })).to.have.property('status', 400);
        expect(handled).to.deep.equal([]);
      });
  });

  it('uses a renewed certificate without a restart', async () => {
    let identity = server.identity;
    const memberState = (fingerprint: string) => listed.get(fingerprint);
    await start({ members: { requireIdentity: () => identity, memberState }, checkMs: 60_000 });
    const renewed = await cluster.node(1);
    const shownBy = async (): Promise<string> => {
      const socket = await connected(port, member.identity);
      const shown = socket.getPeerX509Certificate();
      socket.destroy();
      return shown === undefined ? '' : fingerprintOf(shown);
    };
    expect(await shownBy()).to.equal(server.certificate);
    identity = renewed.identity;
    listener.recheck();
    expect(await shownBy()).to.equal(renewed.certificate);
    expect(await call(port, undefined, 'POST /cluster/echo')).to.equal('cut');
    expect(await call(port, member.identity, 'POST /cluster/echo')).to.include({ status: 200 });
  });

  it('passes the query and the caller’s certificate to a handler', async () => {
    let seen: unknown;
    await start({
      calls: {
        'POST /cluster/echo': async ({ from, certificate, query, body }) => {
          seen = { from, certificate, above: query.get('above'), body: body.toString() };
          return { status: 200, json: {} };
        },
      },
    });
    await call(port, member.identity, 'POST /cluster/echo?above=5', { body: 'x' });
    expect(seen).to.deep.equal({ from: 2, certificate: member.certificate, above: '5', body: 'x' });
  });

  it('streams the output of a handler', async () => {
    await start();
    const answer = await call(port, member.identity, 'GET /cluster/snapshot?above=7');
    expect(answer).to.deep.equal({ status: 200, body: 'records above 7' });
  });

  describe('limits', () => {
    it('reads the last header of a head whose length is below the limit, however many headers it has', async () => {
      await start();
      const socket = await connected(port, member.identity);
      const others = 'A:\r\n'.repeat(3000);
      socket.end(
        `POST /cluster/echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n${others}X-Transitd-Run: ${runText}\r\n\r\n`,
      );
      expect((await socket.toArray()).join('')).to.match(/^HTTP\/1\.1 200 /);
    });

    for (const [bytes, status] of [
      [64 * 1024, 200],
      [64 * 1024 + 1, 413],
    ] as const)
      it(`answers a body of ${bytes} bytes with ${status}`, async () => {
        await start();
        expect(await call(port, member.identity, 'POST /cluster/echo', { body: 'x'.repeat(bytes) })).to.include({ status });
      });

    it('admits members while silent strangers hold connections', async () => {
      await start();
      const strangers: Socket[] = [];
      for (let i = 0; i < 524; i++)
        strangers.push(
          connect({ host: '127.0.0.1', port })
            .on('error', () => undefined)
            .resume(),
        );
      expect(await call(port, member.identity, 'POST /cluster/echo')).to.include({ status: 200 });
      await until(() => strangers.filter((socket) => socket.destroyed).length >= 524 - 512);
      for (const socket of strangers) socket.destroy();
    });

    it('limits one node to 256 connections', async () => {
      await start();
      list(server.certificate, 1);
      // Each connection carries Raft messages: on a slow machine a silent connection would be closed before the last one is open.
      const open = async (): Promise<TLSSocket> => {
        const socket = await connected(port, member.identity);
        socket.resume().write(asksForRaft);
        return socket;
      };
      const held: TLSSocket[] = [];
      while (held.length < 256) held.push(...(await Promise.all(Array.from({ length: 16 }, open))));
      await until(() => raft.length === held.length);
      expect(await call(port, server.identity, 'POST /cluster/echo'), 'another node').to.include({ status: 200 });
      expect(await call(port, member.identity, 'POST /cluster/echo')).to.equal('cut');
      for (const socket of held) socket.destroy();
      await until(() => held.every((socket) => socket.destroyed));
    });
  });

  describe('failures', () => {
    for (const [what, thrown, expected, isReported] of [
      ['a refusal', new RequestError('invalid_request', 'not that'), { status: 400, body: '{"errors":["not that"]}\n' }, false],
      ['a fault', new Error('secret'), { status: 500, body: '{"errors":["internal error"]}\n' }, true],
    ] as const)
      it(`answers ${what}, and reports only faults`, async () => {
        await start({
          calls: {
            'POST /cluster/echo': async () => {
              throw thrown;
            },
          },
        });
        expect(await call(port, member.identity, 'POST /cluster/echo')).to.deep.equal(expected);
        expect(faults).to.deep.equal(isReported ? [thrown] : []);
        faults = [];
      });

    it('cuts a failed stream, so that its reader does not accept a part as the whole', async () => {
      const broken = new Error('broken');
      const stream = async function* (): AsyncGenerator<Buffer> {
        yield Buffer.from('some');
        throw broken;
      };
      await start({ calls: { 'GET /cluster/snapshot': async () => ({ stream: stream() }) } });
      expect(await call(port, member.identity, 'GET /cluster/snapshot')).to.equal('cut');
      expect(faults).to.deep.equal([broken]);
      faults = [];
    });
  });

  it('fails on an address that is in use', async () => {
    await start();
    const second = new ClusterListener({
      members: { requireIdentity: () => server.identity, memberState: () => undefined },
      calls: {},
      forwarded: { handle: () => undefined },
      raft: { accept, judge: () => 'in order' },
      onFault: () => undefined,
    });
    const error = await second.listen({ host: '127.0.0.1', port }).catch((thrown: Error) => thrown);
    expect(error).to.have.property('message', `cluster_listen: 127.0.0.1:${port} cannot be used: EADDRINUSE`);
  });

  it('names an IPv6 address in brackets: its own, and that of a caller that it refuses', async () => {
    await start();
    const refused: string[] = [];
    const members = { requireIdentity: () => server.identity, memberState: () => undefined };
    const guests = { standing: () => undefined };
    const second = new ClusterListener({
      ...{ members, calls: {}, forwarded: { handle: () => undefined } },
      ...{ raft: { accept, judge: () => 'in order' }, onFault: () => undefined },
    });
    const error = await second.listen({ host: '2001:db8::1', port: 8201 }).catch((thrown: Error) => thrown);
    expect(error)
      .to.have.property('message')
      .that.match(/^cluster_listen: \[2001:db8::1\]:8201 cannot be used: E/);
    const callers = new Callers({ members, guests, onRefused: ({ address }) => refused.push(address) });
    const socket = {
      remoteAddress: 'fd00::2a',
      remotePort: 4321,
      getPeerX509Certificate: () => undefined,
      isSessionReused: () => false,
    };
    callers.admit({ ...socket, on: () => undefined, destroy: () => undefined } as unknown as TLSSocket);
    expect(refused).to.deep.equal(['[fd00::2a]:4321']);
  });

  it('ends every connection when it closes', async () => {
    await start();
    const sockets = await Promise.all([connected(port, member.identity), connected(port, member.identity)]);
    await call(port, member.identity, 'POST /cluster/echo');
    const silent = connect({ host: '127.0.0.1', port });
    for (const socket of [...sockets, silent]) socket.on('error', () => undefined).resume();
    await listener.close();
    await until(() => sockets.every((socket) => socket.destroyed));
    silent.destroy();
  });
});
