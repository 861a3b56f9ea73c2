// @live
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { mock } from 'node:test';
import { systemClock } from '@transitd/process';
import type { ConfState } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { renewalHandler, renewIdentity } from '../../src/maintenance/renewal.ts';
import type { NodeIdentity } from '../../src/membership/identity.ts';
import { certificateShown, listedNode, type Member, type Membership } from '../../src/membership/membership.ts';
import type { ClusterHandler } from '../../src/transport/cluster-call.ts';
import { ClusterCallError, ClusterClient, type ClusterClientOptions } from '../../src/transport/cluster-client.ts';
import { ClusterListener } from '../../src/transport/cluster-listener.ts';
import { localAddressFor } from '../../src/transport/listen-address.ts';
import { clusterId, memberAt, type TestCluster, type TestNode, testCluster } from '../credentials.ts';

const timeoutMs = 60_000;
const heartbeat = { json: {}, timeoutMs } as const;

const trusted = ({ authority }: NodeIdentity): X509Certificate[] => [new X509Certificate(authority)];

/** Returns the error of a call without an answer. */
async function failure(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
  } catch (error) {
    return error instanceof ClusterCallError ? error.code : String(error);
  }
  return 'answered';
}

describe('calls to a peer', () => {
  let cluster: TestCluster;
  let server: TestNode;
  let local: TestNode;
  before(async () => {
    cluster = await testCluster();
    [server, local] = await Promise.all([cluster.node(1), cluster.node(2)]);
  });

  let membership: Membership;
  let identity: NodeIdentity;
  let seen: { from: number; certificate: string; port: number | undefined; address: string | undefined; body: string }[];
  let onHeartbeat: ClusterHandler;
  let onForwarded: (req: IncomingMessage, res: ServerResponse) => void;
  let listener: ClusterListener;
  let client: ClusterClient;

  const start = async (port = 0): Promise<number> => {
    listener = new ClusterListener({
      members: {
        requireIdentity: () => server.identity,
        memberState: (fingerprint) => listedNode(membership, fingerprint),
      },
      calls: {
        'POST /cluster/echo': (call) => onHeartbeat(call),
        'POST /cluster/renew': renewalHandler({
          role: { isActive: true },
          authority: { clusterId, readOrMake: async () => cluster.authority },
          changes: {
            make: async (decide) => {
              const change = decide({} as ConfState, membership);
              membership = change?.membership ?? membership;
              return change;
            },
          },
          clock: systemClock,
        }),
        'GET /cluster/snapshot': async () => ({
          stream: (async function* () {
            yield Buffer.from('some');
            await new Promise(() => undefined);
          })(),
        }),
      },
      forwarded: {
        handle: (req, res, from) => {
          const { remotePort, remoteAddress } = req.socket;
          seen.push({ from, certificate: '', port: remotePort, address: remoteAddress, body: '' });
          onForwarded(req, res);
        },
      },
      raft: { accept: () => undefined, judge: () => 'in order' },
      onFault: () => undefined,
      checkMs: 10,
    });
    return listener.listen({ host: '127.0.0.1', port });
  };
  const connectClient = (more: Partial<ClusterClientOptions> = {}): ClusterClient =>
    new ClusterClient({
      members: { requireIdentity: () => identity, member: (id) => membership.members.find((one) => one.id === id) },
      incarnation: { number: 1, nonce: 'a'.repeat(32) },
      connectMsMax: timeoutMs,
      ...more,
    });
  const change = (members: readonly Member[]): void => {
    membership = { members, removed: [] };
  };
  const get = (more: object = {}) => client.forwarding().request(1, { method: 'GET', path: '/v1/sys/x', timeoutMs, ...more });
  const read = async (more: object = {}): Promise<string> => (await buffer((await get(more)).body)).toString();

  beforeEach(async () => {
    identity = local.identity;
    seen = [];
    onHeartbeat = async ({ from, certificate, body }) => {
      seen.push({ from, certificate, port: undefined, address: undefined, body: body.toString() });
      return { status: 200, json: { pong: true } };
    };
    onForwarded = (_req, res) => void res.end('{}');
    const port = await start();
    change([memberAt(server, port), memberAt(local, 1)]);
    client = connectClient();
  });
  afterEach(async () => {
    client.close();
    await listener.close();
  });

  it('carry JSON both ways', async () => {
    expect(await client.post(1, '/cluster/echo', { json: { ping: 1 }, timeoutMs })).to.deep.equal({
      status: 200,
      json: { pong: true },
    });
    expect(seen).to.deep.include({
      from: 2,
      certificate: local.certificate,
      port: undefined,
      address: undefined,
      body: '{"ping":1}',
    });
  });

  it('return an answer that came in time while this process stalled', async () => {
    await read(); // opens a connection
    const { setTimeout: realTimeout } = globalThis;
    mock.timers.enable({ apis: ['setTimeout'] });
    const stall = (): void => {
      realTimeout(() => mock.timers.tick(timeoutMs), 1);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10); // so that the timer is due before the answer is read
    };
    try {
      onForwarded = (_req, res) => void res.once('finish', stall).end('in time');
      expect((await buffer((await get()).body)).toString()).to.equal('in time');
    } finally {
      mock.timers.reset();
    }
  });

  it('return status, headers and body of a forwarded request unchanged', async () => {
    let asked: IncomingMessage | undefined;
    onForwarded = async (req, res) => {
      asked = req;
      res.writeHead(418, { 'X-Answer': 'a' }).end(await buffer(req));
    };
    const headers = { 'X-Service-Token': 's.x', Host: 'client.example' };
    for (const body of [Buffer.from('whole'), Readable.from([Buffer.from('wh'), Buffer.from('ole')])]) {
      const answer = await client.forwarding().request(1, { method: 'PUT', path: '/v1/a?b=c', headers, body, timeoutMs });
      expect(answer.status).to.equal(418);
      expect(answer.headers['x-answer']).to.equal('a');
      expect((await buffer(answer.body)).toString()).to.equal('whole');
      expect(asked).to.include({ method: 'PUT', url: '/v1/a?b=c' });
      expect(asked?.headers).to.include({ 'x-service-token': 's.x', host: 'client.example' });
    }
  });

  it('share one connection when sequential', async () => {
    for (let i = 0; i < 3; i++) await read();
    expect(new Set(seen.map(({ port }) => port)).size).to.equal(1);
  });

  it('do not queue after the clients’ requests', async () => {
    client.close();
    client = connectClient();
    const waiting: ServerResponse[] = [];
    onForwarded = (_req, res) => void waiting.push(res);
    const answers: Promise<string>[] = [];
    while (answers.length < 128) {
      for (let i = 0; i < 16; i++) answers.push(read());
      await until(() => waiting.length === answers.length);
    }
    answers.push(read(), read());
    expect((await client.post(1, '/cluster/echo', heartbeat)).status).to.equal(200);
    onForwarded = (_req, res) => void res.end('{}');
    for (const res of waiting) res.end('{}');
    await Promise.all(answers);
  });

  it('use the configured local address', async () => {
    client.close();
    client = connectClient({ localAddress: '127.0.0.7' });
    await read();
    expect(seen.map(({ address }) => address)).to.deep.equal(['127.0.0.7']);
  });

  for (const [host, expected] of [
    ['127.0.0.2', '127.0.0.2'],
    ['fd00::1', 'fd00::1'],
    ['0.0.0.0', undefined],
    ['::', undefined],
    ['0:0:0:0:0:0:0:0', undefined],
    ['', undefined],
    ['node-1.internal', undefined],
  ] as const)
    it(`use ${expected ?? 'any'} local address when the port listens on "${host}"`, () => {
      expect(localAddressFor(host)).to.equal(expected);
    });

  describe('are certainly not sent', () => {
    it('to an unknown node', async () => {
      expect(await failure(client.post(9, '/cluster/echo', heartbeat))).to.equal('not_sent');
    });

    it('when no process listens', async () => {
      await listener.close();
      expect(await failure(client.post(1, '/cluster/echo', heartbeat))).to.equal('not_sent');
    });

    it('when the peer shows an unlisted certificate, even one of the same authority', async () => {
      const other = await cluster.node(1);
      change(membership.members.map((one) => (one.id === 1 ? { ...one, certificate: other.certificate } : one)));
      expect(await failure(get())).to.equal('not_sent');
      expect(seen).to.deep.equal([]);
    });

    it('when the connection takes too long', async () => {
      const silent = createServer((socket) => void socket.on('error', () => undefined));
      silent.listen(0, '127.0.0.1');
      await once(silent, 'listening');
      change([memberAt(server, (silent.address() as { port: number }).port)]);
      expect(await failure(get({ timeoutMs: 50 }))).to.equal('not_sent');
      client.close();
      silent.close();
    });

    it('when aborted before they start', async () => {
      expect(await failure(get({ signal: AbortSignal.abort() }))).to.equal('not_sent');
    });

    it('after the client was closed', async () => {
      client.close();
      expect(await failure(get())).to.equal('not_sent');
    });
  });

  describe('may have been processed', () => {
    it('when the connection ends without an answer', async () => {
      onForwarded = (req) => void req.socket.destroy();
      expect(await failure(get())).to.equal('outcome_unknown');
    });

    it('when the peer switches protocols instead of answering', async () => {
      onForwarded = (_req, res) => res.writeHead(101, { connection: 'Upgrade', upgrade: 'other' }).flushHeaders();
      expect(await failure(get())).to.equal('outcome_unknown');
    });

    it('when the answer takes too long', async () => {
      await read(); // opens a connection, so that the time limit applies to the answer alone
      onForwarded = () => undefined;
      expect(await failure(get({ timeoutMs: 50 }))).to.equal('outcome_unknown');
      await until(() => seen.length === 2); // the peer may be slower than the limit, but has received the request
    });

    it('when aborted in flight', async () => {
      const giveUp = new AbortController();
      onForwarded = () => giveUp.abort();
      expect(await failure(get({ signal: giveUp.signal }))).to.equal('outcome_unknown');
    });

    it('when the peer had closed the idle connection', async () => {
      await read();
      onForwarded = (req) => void req.socket.destroy();
      expect(await failure(get())).to.equal('outcome_unknown');
      expect(seen.length, 'sent once, never again').to.equal(2);
    });

    it('when the peer is removed in the meantime', async () => {
      const answer = failure(get());
      onForwarded = () => {
        change([memberAt(local, 1)]);
        client.recheck();
      };
      expect(await answer).to.equal('outcome_unknown');
    });

    it('when the client is closed', async () => {
      onForwarded = () => client.close();
      expect(await failure(get())).to.equal('outcome_unknown');
    });

    for (const [what, answer] of [
      ['is not JSON', { status: 200, json: undefined }],
      ['is too long', { status: 200, json: 'x'.repeat(70_000) }],
    ] as const)
      it(`when the answer to a call ${what}`, async () => {
        onHeartbeat = async () => answer;
        expect(await failure(client.post(1, '/cluster/echo', heartbeat))).to.equal('outcome_unknown');
      });
  });

  describe('break the body of an answer', () => {
    it('when it stalls', async () => {
      client.close();
      client = connectClient({ stallMsMax: 20 });
      const { body } = await client.request(1, { method: 'GET', path: '/cluster/snapshot', timeoutMs });
      expect(await failure(buffer(body))).to.include('the answer stalled');
    });

    it('when it is aborted', async () => {
      const giveUp = new AbortController();
      const { body } = await client.request(1, { method: 'GET', path: '/cluster/snapshot', timeoutMs, signal: giveUp.signal });
      const read = failure(buffer(body));
      giveUp.abort();
      expect(await read).to.not.equal('answered');
    });

    it('when it is aborted after it has arrived completely, and before it is read', async () => {
      const giveUp = new AbortController();
      const { body } = await get({ signal: giveUp.signal });
      await until(() => (body as IncomingMessage).complete);
      giveUp.abort();
      expect(await failure(buffer(body))).to.include('aborted');
    });

    it('when the peer ends it', async () => {
      const { body } = await client.request(1, { method: 'GET', path: '/cluster/snapshot', timeoutMs });
      const read = failure(buffer(body));
      await listener.close();
      expect(await read).to.not.equal('answered');
    });
  });

  it('use a new connection after a call without an answer, since idle connections may be dead as well', async () => {
    const held: ServerResponse[] = [];
    onForwarded = (_req, res) => void held.push(res);
    const both = [read(), read()];
    await until(() => held.length === 2);
    for (const res of held) res.end('{}');
    await Promise.all(both); // two free connections now
    onForwarded = () => undefined;
    await failure(get({ timeoutMs: 50 }));
    await until(() => seen.length === 3);
    onForwarded = (_req, res) => void res.end('{}');
    await read();
    const ports = seen.map(({ port }) => port);
    expect(ports.slice(0, 3)).to.not.include(ports[3]);
  });

  it('reach a peer that has moved to another address', async () => {
    await read();
    await listener.close();
    const port = await start();
    change([memberAt(server, port), memberAt(local, 1)]);
    expect(await read()).to.equal('{}');
  });

  describe('a renewal', () => {
    it('gets a certificate for a new key, listed before it arrives and used from the next call on', async () => {
      await client.post(1, '/cluster/echo', heartbeat);
      const renewed = await renewIdentity(client, { identity, authorities: trusted(identity), leader: 1, timeoutMs });
      expect(renewed.key).to.not.equal(identity.key);
      expect(await client.post(1, '/cluster/echo', heartbeat), 'the old certificate until the new one is shown').to.include({
        status: 200,
      });
      identity = renewed;
      expect(await client.post(1, '/cluster/echo', heartbeat)).to.include({ status: 200 });
      const shown = seen.map(({ certificate }) => certificate);
      expect(shown.slice(0, 2)).to.deep.equal([local.certificate, local.certificate]);
      expect(shown[2]).to.equal(membership.members.find(({ id }) => id === 2)?.nextCertificate);
      membership = certificateShown(membership, 2, shown[2] ?? '');
      identity = local.identity;
      expect(await failure(client.post(1, '/cluster/echo', heartbeat)), 'the old certificate afterwards').to.not.equal(
        'answered',
      );
    });

    it('is refused for another node’s request, and without a request', async () => {
      const { makeRequest } = await import('../../src/membership/authority.ts');
      const other = await makeRequest(3);
      for (const json of [{ request: other.request }, { request: 'x' }, {}, null]) {
        expect(await client.post(1, '/cluster/renew', { json, timeoutMs })).to.include({ status: 400 });
      }
      expect(membership.members.some(({ nextCertificate }) => nextCertificate !== undefined)).to.equal(false);
    });

    it('sends no certificate that could not be listed', async () => {
      const handler = renewalHandler({
        role: { isActive: true },
        authority: { clusterId, readOrMake: async () => cluster.authority },
        changes: { make: () => Promise.reject(new StoreError('not_leader', 'no')) },
        clock: systemClock,
      });
      const { makeRequest } = await import('../../src/membership/authority.ts');
      const body = Buffer.from(JSON.stringify({ request: (await makeRequest(2)).request }));
      const channel = (): Buffer => Buffer.alloc(0);
      const asked = handler({
        from: 2,
        certificate: local.certificate,
        channel,
        proved: () => undefined,
        body,
        query: new URLSearchParams(),
      });
      expect(await asked.catch((error: StoreError) => error.code)).to.equal('not_leader');
    });

    for (const [what, answer] of [
      ['a refusal', async () => ({ status: 503, json: { errors: [] } })],
      [
        'another key’s certificate',
        async () => ({ status: 200, json: { certificate: (await cluster.node(2)).identity.certificate } }),
      ],
      [
        'another authority’s',
        async () => ({ status: 200, json: { certificate: (await (await testCluster()).node(2)).identity.certificate } }),
      ],
      ['no certificate', async () => ({ status: 200, json: {} })],
    ] as const)
      it(`rejects an answer with ${what}`, async () => {
        const asked = renewIdentity(
          { post: answer },
          { identity: local.identity, authorities: trusted(local.identity), leader: 1, timeoutMs },
        );
        expect(await asked.catch((error: Error) => error.message)).to.match(/renewed/);
      });
  });
});

describe('a server that pretends to be a peer', () => {
  it('gets no byte of a request', async () => {
    const [cluster, foreign] = await Promise.all([testCluster(), testCluster()]);
    const [real, impostor, local] = await Promise.all([cluster.node(1), foreign.node(1), cluster.node(2)]);
    const { createServer: createTlsServer } = await import('node:tls');
    let heard = 0;
    const connections: Socket[] = [];
    const { key, certificate: cert } = impostor.identity;
    const server: Server = createTlsServer({ key, cert, requestCert: true, rejectUnauthorized: false }, (socket) => {
      connections.push(socket);
      socket.on('error', () => undefined).on('data', () => heard++);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const member = memberAt(real, (server.address() as { port: number }).port);
    const client = new ClusterClient({
      members: { requireIdentity: () => local.identity, member: () => member },
      incarnation: { number: 1, nonce: 'a'.repeat(32) },
    });
    const body = Buffer.from('secret');
    expect(await failure(client.forwarding().request(1, { method: 'POST', path: '/v1/x', body, timeoutMs }))).to.equal(
      'not_sent',
    );
    await until(() => connections.every((socket) => socket.destroyed));
    expect(heard).to.equal(0);
    client.close();
    server.close();
  });
});
