// @live
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { Limits, type LimitsConfig } from '../../src/pipeline/limits.ts';
import { type Served, served } from '../served.ts';

const few: LimitsConfig = { reads: 1, changes: 1, logins: 1, waiting: 0, body_memory: 1_000_000 };

describe('an overloaded node', () => {
  let server: Served;
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.close();
  });

  /** Every commit waits until the test releases it. */
  const holdCommits = (): (() => void) => {
    const held = Promise.withResolvers<void>();
    const { commit } = server.store;
    server.store.commit = async (transaction) => {
      await held.promise;
      return commit.call(server.store, transaction);
    };
    return held.resolve;
  };
  const open = async (sent: string): Promise<Socket> => {
    const socket = connect(Number(server.url.port), server.url.hostname);
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(sent);
    return socket;
  };
  const post = (path: string, length: number): string =>
    `POST /v1/${path} HTTP/1.1\r\nHost: x\r\nX-Service-Token: ${server.rootToken}\r\nContent-Length: ${length}\r\n\r\n`;

  it('refuses a change with 503 and Retry-After, executes nothing, and accepts it once there is room', async () => {
    const limits = new Limits(few);
    server = await served({ limits });
    const letGo = holdCommits();
    const first = server.ask('POST transit/keys/a');
    await until(() => limits.changes.atWork === 1);
    const refused = await server.ask('POST transit/keys/b');
    expect([refused.status, refused.headers.get('retry-after'), refused.body]).to.deep.equal([
      503,
      '1',
      { errors: ['the node has too much to do at the moment; nothing was done'] },
    ]);
    letGo();
    expect((await first).status).to.equal(200);
    expect((await server.ask('GET transit/keys?list=true')).body.data.keys).to.deep.equal(['a']);
    expect((await server.ask('POST transit/keys/b')).status).to.equal(200);
    expect([limits.changes.atWork, limits.changes.refused]).to.deep.equal([0, 1]);
  });

  it('still serves cryptography, reads, health and operators while changes are stuck', async () => {
    const limits = new Limits(few);
    server = await served({ limits });
    await server.ask('POST transit/keys/k');
    const letGo = holdCommits();
    const first = server.ask('POST transit/keys/a');
    await until(() => limits.changes.atWork === 1);
    const answers = ['POST transit/random', 'GET transit/keys/k', 'GET sys/seal-status', 'GET sys/metrics'].map(
      async (line) => (await server.ask(line)).status,
    );
    for (const answer of answers) expect(await answer).to.equal(200);
    letGo();
    await first;
  });

  it('still serves health, metrics and sealing while cryptography uses all places', async () => {
    const limits = new Limits(few);
    server = await served({ limits });
    limits.reads.enter(undefined as never);
    limits.changes.enter(undefined as never);
    expect((await server.ask('POST transit/random')).status).to.equal(503);
    expect((await server.ask('GET sys/metrics')).status).to.equal(200);
    expect((await server.ask('GET sys/seal-status', { token: null })).status).to.equal(200);
    expect((await server.ask('GET sys/internal/counters/none', { token: null })).status).to.equal(403);
  });

  it('gives one token half of the places, so that another token is served while the first has more requests than that', async () => {
    const limits = new Limits({ ...few, reads: 4, changes: 4, waiting: 8 });
    server = await served({ limits });
    const tokenOf = async () =>
      (await server.ask('POST auth/token/create', { body: { policies: ['root'] } })).body.auth.client_token;
    const other = await tokenOf();
    const letGo = holdCommits();
    const own = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => server.ask(`POST transit/keys/${name}`));
    await until(() => limits.changes.waiting === 4);
    expect(limits.changes.atWork).to.equal(2);
    const others = ['x', 'y'].map((name) => server.ask(`POST transit/keys/${name}`, { token: other }));
    await until(() => limits.changes.atWork === 4);
    expect(limits.changes.waiting).to.equal(4);
    letGo();
    for (const answer of [...own, ...others]) expect((await answer).status).to.equal(200);
    expect([limits.changes.atWork, limits.changes.waiting]).to.deep.equal([0, 0]);
  });

  it('counts reads of one token too', async () => {
    const limits = new Limits({ ...few, reads: 4, waiting: 0 });
    server = await served({ limits });
    const seen: string[] = [];
    const { enter } = limits.reads;
    limits.reads.enter = (res, caller) => {
      seen.push(caller ?? '');
      return enter.call(limits.reads, res, caller);
    };
    await server.ask('POST transit/random');
    const [own = ''] = seen;
    expect(own).to.match(/./);
    for (let n = 0; n < 2; n += 1) limits.reads.enter(undefined as never, own);
    expect((await server.ask('POST transit/random')).status).to.equal(503);
    const { body } = await server.ask('POST auth/token/create', { body: { policies: ['root'] } });
    expect((await server.ask('POST transit/random', { token: body.auth.client_token })).status).to.equal(200);
  });

  it('gives a request no place while its body is incomplete', async () => {
    const limits = new Limits(few);
    server = await served({ limits });
    const slow = await open(`${post('transit/random', 11)}{`);
    const answers = await Promise.all(Array.from({ length: 5 }, () => server.ask('POST transit/random')));
    expect(answers.map(({ status }) => status)).to.include(200);
    expect(limits.reads.atWork).to.equal(0);
    slow.end('"bytes":4}');
    expect(await text(slow)).to.match(/^HTTP\/1.1 200 /);
  });

  it('releases the place after any response', async () => {
    const limits = new Limits(few);
    server = await served({ limits });
    for (const [line, body] of [
      ['POST transit/encrypt/none', { plaintext: '' }],
      ['POST transit/decrypt/none', {}],
      ['POST transit/keys/k', { type: 'none' }],
      ['DELETE transit/keys/none', {}],
      ['POST sys/no/such', {}],
      ['POST auth/token/create', { policies: 5 }],
    ] as const)
      expect((await server.ask(line, { body })).status, line).to.be.oneOf([200, 400, 404]);
    expect([limits.reads.atWork, limits.changes.atWork]).to.deep.equal([0, 0]);
  });

  it('queues a body that does not fit, but never a small one', async () => {
    const limits = new Limits({ ...few, waiting: 4, body_memory: 300_000 });
    server = await served({ limits });
    const half = await open(`${post('transit/random', 300_000)}{"x":"${'A'.repeat(200_000)}`);
    await until(() => limits.bodies.held > 200_000);
    const large = server.ask('POST transit/random', { body: { bytes: 4, x: 'A'.repeat(250_000) } });
    await until(() => limits.bodies.waiting === 1);
    expect((await server.ask('POST transit/random', { body: { bytes: 4 } })).status).to.equal(200);
    half.destroy();
    expect((await large).status).to.equal(200);
    await until(() => limits.bodies.held === 0);
    expect([limits.bodies.refused, limits.bodies.waiting]).to.deep.equal([0, 0]);
  });

  it('parses a large body once there is memory for its values, and small ones meanwhile', async () => {
    const limits = new Limits({ ...few, waiting: 4 });
    server = await served({ limits });
    const other = { tokenId: 'other', address: 'other' };
    expect(limits.bodies.tryParse(other, 64_000_000)).to.equal(true);
    const large = server.ask('POST transit/random', { body: { bytes: 4, x: Array(100_000).fill(1) } });
    await until(() => limits.bodies.waiting === 1);
    expect(limits.reads.atWork).to.equal(0);
    expect((await server.ask('POST transit/random', { body: { bytes: 4 } })).status).to.equal(200);
    limits.bodies.parsed(other, 64_000_000);
    expect((await large).status).to.equal(200);
    await until(() => limits.bodies.held === 0);
    expect(limits.bodies.tryParse(other, 64_000_000), 'the memory is free again').to.equal(true);
  });

  it('executes two large batches of one token at a time, and other requests and tokens meanwhile', async () => {
    const limits = new Limits({ ...few, reads: 10, changes: 10, waiting: 4 });
    server = await served({ limits });
    const letGo = holdCommits();
    const large = { batch_input: Array(1_100).fill({ plaintext: '' }) };
    const ends = ['a', 'b', 'c'].map((key) => server.ask(`POST transit/encrypt/${key}`, { body: large }));
    await until(() => limits.batches.waiting === 1);
    expect([limits.batches.atWork, limits.reads.atWork]).to.deep.equal([2, 2]);
    expect((await server.ask('POST transit/random', { body: { bytes: 4 } })).status).to.equal(200);
    expect(limits.batches.tryEnter('another token')).to.equal(true);
    limits.batches.leave('another token');
    letGo();
    expect((await Promise.all(ends)).map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    expect([limits.batches.atWork, limits.batches.waiting]).to.deep.equal([0, 0]);
  });

  it('refuses a body with 503 and Retry-After if memory and queue are full', async () => {
    const limits = new Limits({ ...few, body_memory: 300_000 });
    server = await served({ limits });
    await open(`${post('transit/random', 300_000)}{"x":"${'A'.repeat(200_000)}`);
    await until(() => limits.bodies.held > 200_000);
    const [answer] = await once(await open(`${post('transit/random', 300_000)}{"x":"${'A'.repeat(100_000)}`), 'data');
    expect(String(answer))
      .to.match(/^HTTP\/1.1 503 .*Retry-After: 1\r\n/s)
      .and.match(/too much to do/);
    expect(limits.bodies.refused).to.equal(1);
  });

  it('drops a queued body when its caller disconnects', async () => {
    const limits = new Limits({ ...few, waiting: 4, body_memory: 300_000 });
    server = await served({ limits });
    const half = await open(`${post('transit/random', 300_000)}{"x":"${'A'.repeat(200_000)}`);
    await until(() => limits.bodies.held > 200_000);
    const waits = await open(`${post('transit/random', 300_000)}{"x":"${'A'.repeat(100_000)}`);
    await until(() => limits.bodies.waiting === 1);
    waits.destroy();
    await until(() => limits.bodies.waiting === 0);
    half.destroy();
    await until(() => limits.bodies.held === 0);
  });

  it('refuses a body of unknown length that outgrows the memory', async () => {
    const limits = new Limits({ ...few, body_memory: 100_000 });
    server = await served({ limits });
    const token = `X-Service-Token: ${server.rootToken}`;
    const head = `POST /v1/transit/random HTTP/1.1\r\nHost: x\r\n${token}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const chunk = `8000\r\n${' '.repeat(0x8000)}\r\n`;
    const socket = await open(head + chunk.repeat(8));
    const [piece] = await once(socket, 'data');
    expect(String(piece)).to.match(/^HTTP\/1.1 503 /);
    socket.destroy();
    await until(() => limits.bodies.held === 0);
  });

  for (const path of ['transit/random', 'transit/keys/b'])
    it(`releases the place of a pipelined ${path} whose connection has ended`, async () => {
      const limits = new Limits({ ...few, changes: 2, body_memory: 300_000 });
      server = await served({ limits });
      const letGo = holdCommits();
      const body = JSON.stringify({ bytes: 4, x: 'A'.repeat(200_000) });
      const socket = await open(`${post('transit/keys/a', 0)}${post(path, body.length)}${body}`);
      await until(() => limits.bodies.held > 100_000 && limits.changes.atWork > 0);
      socket.destroy();
      await until(() => limits.bodies.held === 0);
      letGo();
      await until(() => limits.changes.atWork === 0);
    });

  it('reserves nothing for announced lengths: many heads that announce the maximum block nobody', async () => {
    const limits = new Limits({ ...few, body_memory: 300_000 });
    server = await served({ limits });
    for (let n = 0; n < 20; n += 1) await open(`${post('transit/random', 300_000)}{`);
    expect((await server.ask('POST transit/random', { body: { bytes: 4, x: 'A'.repeat(200_000) } })).status).to.equal(200);
    expect(limits.bodies.refused).to.equal(0);
  });
});
