// @live
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer, type RequestListener, request } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Limits } from '@transitd/api';
import { attachFront, Connections, readBody, sendReply } from '@transitd/http';
import { expect } from 'chai';
import { clientConnectionsMax, fittingConnections } from '../src/descriptors.ts';
import { Gateways, type GatewaysParts } from '../src/gateways/gateways.ts';
import { clearRow, nodeLimits, threadLimits } from '../src/gateways/node-limits.ts';
import { PassedRequests } from '../src/gateways/passed-requests.ts';
import { Passing } from '../src/gateways/passing.ts';
import { senderIn, senderText } from '../src/gateways/sender.ts';
import { gatewayThreads, type Machine } from '../src/machine.ts';

const limitsWith = (more: object) => ({
  limits: { reads: 10, changes: 5, logins: 5, waiting: 7, body_memory: 100, connections: 64, ...more },
  listeners: [{ max_request_size: 60 }],
});
const limitsOf = (more: object, workers: number) => {
  const { limits, listeners } = limitsWith(more);
  return nodeLimits({ limits, listeners } as unknown as Parameters<typeof nodeLimits>[0], workers, limits.connections);
};
const gatewayOf = (divided: ReturnType<typeof nodeLimits>, row = 0): Limits =>
  new Limits(limitsWith({}).limits, threadLimits(divided, row));

describe('the limits of a node, divided between its threads', () => {
  it('add up to the limits, and so do the parts of one caller, whatever they are', () => {
    for (const workers of [0, 1, 2, 3, 7]) {
      for (const more of [{}, { reads: 1, waiting: 0 }, { reads: 1024, body_memory: 60, connections: 4096 }]) {
        const { reads, waiting, body_memory, connections } = limitsWith(more).limits;
        const divided = limitsOf(more, workers);
        for (const [limit, max, perCaller] of [
          [divided.connections, connections, connections],
          [divided.reads, reads, Math.ceil(reads / 2)],
          [divided.bodies, body_memory, body_memory / 4],
          [divided.growing, Math.floor(body_memory / 8), Math.ceil(Math.floor(body_memory / 8) / 4)],
          [divided.parsed, 64_000_000, 16_000_000],
        ] as const) {
          const { main, gateway, common } = limit;
          expect(main.own + workers * gateway.own + (common?.max ?? 0)).to.equal(max);
          expect(main.ownPerCaller + workers * gateway.ownPerCaller + (common?.perCallerMax ?? 0)).to.equal(perCaller);
        }
        expect(divided.waitingBodies.main + workers * divided.waitingBodies.gateway).to.equal(waiting);
      }
    }
  });

  it('leave the main thread a place, and memory for the largest body', () => {
    const { reads, bodies, parsed } = limitsOf({ reads: 4 }, 3);
    expect([reads.main.own, reads.gateway.own, reads.common?.max]).to.deep.equal([1, 0, 3]);
    expect(bodies.main.own).to.be.at.least(60);
    expect(parsed.main.own).to.equal(64_000_000);
  });

  it('give a thread all places that the others do not use, but leave the others their own', () => {
    const divided = limitsOf({ reads: 16 }, 1);
    const [main, gateway] = [new Limits(limitsWith({ reads: 16 }).limits, threadLimits(divided)), gatewayOf(divided)];
    const entered = ({ reads }: Limits): number =>
      Array.from({ length: 20 }, (_, n) => reads.tryEnter(`caller ${n}`)).filter(Boolean).length;
    expect(entered(gateway)).to.equal(12);
    expect(entered(main)).to.equal(4);
    clearRow(divided, 0); // the gateway has ended
    expect(entered(main)).to.equal(8);
  });

  it('give one caller half of the places, over all threads', () => {
    for (const workers of [1, 2, 4]) {
      const divided = limitsOf({ reads: 64 }, workers);
      const threads = Array.from({ length: workers }, (_, row) => gatewayOf(divided, row));
      const places = [...threads, new Limits(limitsWith({}).limits, threadLimits(divided))].flatMap(({ reads }) =>
        Array.from({ length: 64 }, () => reads.tryEnter('one caller')),
      );
      expect(places.filter(Boolean).length).to.equal(32);
    }
  });

  it('count three descriptors for a connection of a gateway', () => {
    const left = 10_000 - (128 + 2000);
    const most = (threads: number) =>
      clientConnectionsMax({ openFilesMax: 10_000, connectionsMax: 1e6, clustered: false, threads });
    expect(most(1)).to.equal(left);
    for (const threads of [2, 3, 5]) expect(most(threads)).to.equal(Math.floor(left / 3)); // gateways may get all of them
  });
});

describe('the limit on connections of several threads', () => {
  const open = (connections: Connections, address: string): Socket => {
    const socket = new EventEmitter() as Socket;
    const destroy = (): Socket => Object.assign(socket, { destroyed: true });
    connections.add(Object.assign(socket, { remoteAddress: address, destroyed: false, destroy }), () => new Set());
    return socket;
  };
  const threadsOf = (max: number) => {
    const divided = limitsOf({ connections: max }, 1);
    const thread = (row?: number): Connections => new Connections(threadLimits(divided, row).connections);
    return { divided, main: thread(), gateway: thread(0) };
  };
  const alive = (sockets: readonly Socket[]): number => sockets.filter(({ destroyed }) => !destroyed).length;

  it('adds up to that of the node, however the kernel spreads the connections', () => {
    const { main, gateway } = threadsOf(16);
    const uneven = Array.from({ length: 16 }, (_, n) => open(n < 11 ? main : gateway, `192.0.2.${n}`));
    expect(alive(uneven)).to.equal(16);
    open(main, '192.0.2.99');
    open(gateway, '192.0.2.98');
    expect(main.open + gateway.open).to.equal(16);
  });

  it('leaves places on each thread, even if one caller fills all that it can on the other', () => {
    for (const [full, other] of [
      ['main', 'gateway'],
      ['gateway', 'main'],
    ] as const) {
      const threads = threadsOf(16);
      const flood = Array.from({ length: 100 }, () => open(threads[full], '192.0.2.1'));
      expect(alive(flood)).to.equal(12);
      const probes = [1, 2, 3, 4].map(() => open(threads[other], '192.0.2.2'));
      expect(alive(probes)).to.equal(4);
      const late = open(threads[full], '192.0.2.3');
      expect([late.destroyed, alive(flood)]).to.deep.equal([false, 11]);
    }
  });

  it('frees the places of a connection when it ends, and those of a gateway when it has ended', () => {
    const { divided, main, gateway } = threadsOf(8);
    const taken = (): number | undefined => threadLimits(divided).connections.common?.taken;
    const sockets = Array.from({ length: 6 }, () => open(gateway, '192.0.2.1'));
    expect(taken()).to.equal(4);
    sockets[0]?.emit('close');
    expect(taken()).to.equal(3);
    clearRow(divided, 0);
    expect(taken()).to.equal(0);
    expect(alive(Array.from({ length: 6 }, () => open(main, '192.0.2.2')))).to.equal(6);
  });
});

describe('the number of gateways', () => {
  const machine = { spreadsConnections: true, cores: 4, memoryBytes: 2 ** 34, connectionsFor: () => 4096 };
  const countOf = (more: Partial<Machine> = {}, workers: number | 'auto' = 'auto', limits = {}) =>
    gatewayThreads({ workers, limits: limitsWith(limits).limits } as unknown as Parameters<typeof gatewayThreads>[0], {
      ...machine,
      ...more,
    });

  it('is the configured one, whatever the machine', () => {
    expect(countOf({ cores: 1, memoryBytes: 0 }, 7)).to.equal(7);
    expect(countOf({}, 0)).to.equal(0);
  });

  it('leaves a core to the main thread if it is automatic, and is at most 4', () => {
    expect([1, 2, 3, 64].map((cores) => countOf({ cores }))).to.deep.equal([0, 1, 2, 4]);
  });

  it('fits an eighth of the memory if it is automatic', () => {
    expect([512, 1024, 2048].map((mib) => countOf({ memoryBytes: mib * 2 ** 20 }))).to.deep.equal([0, 1, 3]);
  });

  it('leaves a read to each thread if it is automatic', () => {
    expect([1, 2, 3].map((reads) => countOf({}, 'auto', { reads }))).to.deep.equal([0, 1, 2]);
  });

  it('does not lower the limit of connections if it is automatic', () => {
    const among = (openFilesMax: number) => (threads: number) =>
      fittingConnections({ openFilesMax, connectionsMax: 4096, clustered: false, threads });
    const left = 128 + 3 * 4096;
    const files = Math.ceil(left / 0.8);
    expect([files - 5, files].map((openFiles) => countOf({ connectionsFor: among(openFiles) }))).to.deep.equal([0, 3]);
  });

  it('is 0 where the kernel does not spread connections', () => {
    for (const workers of ['auto', 2] as const) expect(countOf({ spreadsConnections: false }, workers)).to.equal(0);
  });
});

describe('a gateway thread', () => {
  /** Starts one that runs this program, in which `post` sends a message, and notes the uses that it reports. */
  function threadOf(program: string) {
    const uses: unknown[] = [];
    const loading = { threads: 0 };
    const { promise: listens, resolve: attach } = Promise.withResolvers<void>();
    const { promise: ended, resolve: detach } = Promise.withResolvers<void>();
    const text = `import { parentPort } from 'node:worker_threads';
      const post = (kind, more) => parentPort.postMessage({ kind, ...more });
      ${program}`;
    const parts = {
      ...{ config: {}, limits: limitsOf({}, 1), main: {}, count: 1, listeners: [], audit: undefined, metrics: {} },
      host: { memory: {}, attach, detach, lagging: () => [] },
      usage: { addFromThread: (...counted: unknown[]) => void uses.push(counted) },
      log: { info: () => undefined, error: () => undefined },
      heapGrowth: { threadLoads: () => void loading.threads++, threadLoaded: () => void loading.threads-- },
      script: new URL(`data:text/javascript,${encodeURIComponent(text)}`),
    };
    const gateways = new Gateways(parts as unknown as GatewaysParts);
    gateways.start();
    return { gateways, uses, loading, listens, ended };
  }

  for (const [title, program, hasLost] of [
    ['that ends before it listens has lost no uses', '', false],
    ['that ends after it listened may have lost some', `post('listening');`, true],
    ['that ends after it was drained has lost none', `post('listening'); post('drained', { asked: 1 });`, false],
  ] as const)
    it(title, async () => {
      const { gateways, uses, loading, ended } = threadOf(program);
      await ended;
      await gateways.stop();
      expect(uses).to.deep.equal(hasLost ? [[[], { hasLost: true }]] : []);
      expect(loading.threads).to.equal(0);
    });

  it('has reported its uses when it has answered, not when a report arrives that was on its way', async () => {
    const { gateways, uses, listens } = threadOf(`
      const report = (use, more) =>
        post('report', { answers: { operations: [], ms: [], statuses: [], passed: 0 }, counted: { uses: [use] }, ...more });
      parentPort.on('message', ({ asked }) => {
        report('before');
        setImmediate(() => report('since', { asked }));
      });
      post('listening');`);
    await listens;
    expect(await gateways.report(60_000)).to.equal(true);
    expect(uses.map((counted) => (counted as [unknown])[0])).to.deep.equal([['before'], ['since']]);
    await gateways.stop();
  });
});

describe('the header of a passed request', () => {
  const certificate = {
    sha256: 'aa',
    expiresMs: 1_700_000_000_000,
    der: Buffer.from('3000', 'hex'),
    chains: [['aa', 'bb'], ['aa']],
  };
  for (const told of [undefined, certificate])
    it(`names the client of the gateway, ${told === undefined ? 'without' : 'with'} a verified certificate`, () => {
      const text = senderText('secret', 1, { remoteAddress: '2001:db8::1', remotePort: 4711 }, told);
      expect(senderIn(text, 'secret')).to.deep.equal({ listener: 1, address: '2001:db8::1', port: 4711, certificate: told });
    });

  it('is refused without the secret', () => {
    const text = senderText('guessed', 0, { remoteAddress: '127.0.0.1', remotePort: 1 }, certificate);
    for (const header of [undefined, '', 'x', text, text.replace('guessed', 'secret2'), [text]])
      expect(senderIn(header, 'secret')).to.equal(undefined);
  });
});

describe('a request that a gateway passes to the main thread', () => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  /** Starts the main thread's end with `front`, and a gateway that passes every request; returns the gateway's port. */
  async function gatewayOf(
    front: RequestListener,
    folder = mkdtempSync(join(tmpdir(), 'gateways-')),
    stillMs?: number,
    idle: { readonly idleMs?: number } = {},
  ) {
    const passed = new PassedRequests(folder, [front]);
    await passed.listen();
    const passing = new Passing(passed.address, idle);
    const gateway = createServer({ requireHostHeader: false });
    attachFront(gateway, (req, res) => passing.pass(0, req, res));
    if (stillMs !== undefined) gateway.timeout = stillMs;
    await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
    cleanups.push(
      () => rmSync(folder, { recursive: true, force: true }),
      () => passed.close(),
    );
    cleanups.push(
      () => passing.close(),
      () => gateway.close(),
      () => gateway.closeAllConnections(),
    );
    return { port: (gateway.address() as AddressInfo).port, socketPath: passed.address.socketPath };
  }

  /** Sends a request; returns status, headers and body. */
  const send = (port: number, method: string, path: string, headers: Record<string, string | string[]>, body = '') =>
    new Promise<{ status: number | undefined; headers: NodeJS.Dict<string | string[]>; text: string }>((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (answer) => {
        let text = '';
        answer.on('data', (part) => {
          text += part;
        });
        answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
      });
      sent.on('error', reject);
      sent.end(body);
    });

  /** Sends these bytes; resolves with everything that arrives until the connection ends. */
  const exchange = (port: number, bytes: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
      let text = '';
      socket.on('data', (part) => {
        text += part;
      });
      socket.on('error', reject);
      socket.on('close', () => resolve(text));
    });

  it('arrives as the client sent it, from the client’s address, without the headers that a gateway adds', async () => {
    const { port } = await gatewayOf(async (req, res) => {
      const body = await readBody(req, res, { bytesMax: 100, deadlineMs: 60_000, room: undefined });
      const { method, url, headers, socket } = req;
      res.setHeader('X-Answer', 'yes');
      res.end(
        JSON.stringify({ method, url, headers, address: socket.remoteAddress, port: socket.remotePort, body: body.toString() }),
      );
    });
    const headers = { 'X-Service-Token': 't', 'x-transitd-gateway': 'forged 0 1 192.0.2.1' };
    const {
      status,
      headers: answered,
      text,
    } = await send(port, 'POST', '/v1/a%20b?c=d', { ...headers, 'Content-Length': '5' }, 'hello');
    expect([status, answered['x-answer']]).to.deep.equal([200, 'yes']);
    const seen = JSON.parse(text);
    expect(seen).to.include({ method: 'POST', url: '/v1/a%20b?c=d', address: '127.0.0.1', body: 'hello' });
    const chunked = await send(port, 'PUT', '/', { 'Transfer-Encoding': 'chunked' }, 'hello');
    expect(JSON.parse(chunked.text)).to.include({ method: 'PUT', body: 'hello' });
    expect(seen.port).to.be.above(0);
    expect(seen.headers).to.include({ 'x-service-token': 't' });
    expect(seen.headers).not.to.have.property('x-transitd-gateway');
  });

  it('keeps its transfer coding, so that the main thread refuses one that no thread decodes', async () => {
    const { port } = await gatewayOf((req, res) => res.end(`coding ${req.headers['transfer-encoding']}`));
    for (const coding of ['gzip, chunked', 'chunked']) {
      const head = `POST /v1/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: ${coding}\r\n\r\n`;
      const text = await exchange(port, `${head}2\r\n{}\r\n0\r\n\r\n`);
      expect(text).to.contain(`coding ${coding}`);
    }
  });

  it('has no body in the main thread if the client sent none, whatever its method', async () => {
    const { port } = await gatewayOf((req, res) => {
      const { 'transfer-encoding': coding, 'content-length': length } = req.headers;
      res.end(JSON.stringify([req.method, coding ?? null, length ?? '0']));
    });
    for (const method of ['LIST', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      const head = `${method} /v1/transit/keys HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`;
      expect(await exchange(port, head))
        .to.match(/^HTTP\/1\.1 200 /)
        .and.contain(JSON.stringify([method, null, '0']));
    }
  });

  it('reaches the main thread as a LIST with the header bytes that a gateway accepts', async () => {
    const { port } = await gatewayOf((_req, res) => res.end('served'));
    for (const method of ['GET', 'LIST']) {
      const long = `${method} /v1/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Long: ${'a'.repeat(16_200)}\r\n\r\n`;
      expect(await exchange(port, long), method).to.match(/^HTTP\/1\.1 200 /);
    }
  });

  it('counts as many headers as the client sent', async () => {
    const { port } = await gatewayOf((_req, res) => res.end('served'));
    for (const method of ['GET', 'LIST']) {
      const many = Array.from({ length: 998 }, (_, i) => `X${i}: a\r\n`).join('');
      const head = `${method} /v1/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n${many}\r\n`;
      expect(await exchange(port, head), method).to.match(/^HTTP\/1\.1 200 /);
    }
  });

  it('is answered early although the client still sends its body', async () => {
    const { port } = await gatewayOf(async (req, res) => {
      try {
        await readBody(req, res, { bytesMax: 100, deadlineMs: 60_000, room: undefined });
      } catch {
        res.statusCode = 413;
      }
      res.end('too large');
    });
    for (let round = 0; round < 20; round++) {
      const bytes = 4_000_000;
      const answer = await exchange(
        port,
        `POST /v1/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: ${bytes}\r\n\r\n${'a'.repeat(bytes)}`,
      );
      expect(answer).to.match(/^HTTP\/1\.1 413 /);
    }
  });

  it('is refused before a byte of its body has arrived', async () => {
    const { port } = await gatewayOf((req, res) => {
      const tooLarge = () => sendReply(res, { status: 413, body: '{}' }, { head: false });
      void Promise.resolve(readBody(req, res, { bytesMax: 100, deadlineMs: 60_000, room: undefined })).catch(tooLarge);
    });
    const socket = connect(port, '127.0.0.1');
    socket.write('POST /v1/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 200\r\n\r\n');
    const [answer] = await once(socket, 'data');
    expect(String(answer)).to.match(/^HTTP\/1\.1 413 /);
    socket.end();
    await once(socket, 'close');
  });

  it('is received to its end although the main thread closes its connection after the answer', async () => {
    const { promise: seen, resolve: sees } = Promise.withResolvers<void>();
    const { port } = await gatewayOf((req, res) => {
      res.writeHead(413, { Connection: 'close', 'Content-Length': 9 }).write('too large');
      void seen.then(() => req.socket.destroy());
    });
    const length = 20_000_000;
    const socket = connect(port, '127.0.0.1');
    socket.write(`POST /v1/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n`);
    socket.write('a'.repeat(length / 2));
    let answer = '';
    while (!answer.endsWith('too large')) answer += String((await once(socket, 'data'))[0]);
    expect(answer).to.match(/^HTTP\/1\.1 413 /);
    sees();
    await new Promise((resolve, reject) => {
      socket.on('error', reject).on('close', resolve);
      socket.write('a'.repeat(length / 2));
    });
    expect(socket.bytesWritten).to.be.above(length);
  });

  it('may take longer in the main thread than a connection may make no progress', async () => {
    const { port } = await gatewayOf(
      async (req, res) => {
        const body = await readBody(req, res, { bytesMax: 100, deadlineMs: 60_000, room: undefined });
        setTimeout(() => res.end(`restored ${body}`), 1500);
      },
      undefined,
      1000,
    );
    expect((await send(port, 'GET', '/', {})).text).to.equal('restored ');
    expect((await send(port, 'POST', '/', { 'Content-Length': '4' }, 'body')).text).to.equal('restored body');
    expect(await exchange(port, 'LIST / HTTP/1.1\r\nHost: h\r\n\r\n')).to.match(/restored $/);
  });

  it('may take longer than the timeout of unused connections, and leaves no connection open', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const { port } = await gatewayOf(
      (req, res) => {
        req.socket.once('close', () => resolve());
        setTimeout(() => res.end('served'), 300);
      },
      undefined,
      undefined,
      { idleMs: 50 },
    );
    expect((await send(port, 'GET', '/', {})).text).to.equal('served');
    await closed;
  });

  it('ends in the main thread when the client goes away', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const { promise: arrived, resolve: arrives } = Promise.withResolvers<void>();
    const { port } = await gatewayOf((_req, res) => {
      res.once('close', () => resolve());
      arrives();
    });
    const sent = request({ host: '127.0.0.1', port, path: '/', agent: false });
    sent.on('error', () => undefined);
    sent.end();
    await arrived;
    sent.destroy();
    await closed;
  });

  it('is answered 503 or, if it may have changed something, 504 when the main thread cuts its connection', async () => {
    const { port } = await gatewayOf((req) => req.socket.destroy());
    const read = await send(port, 'GET', '/', {});
    expect([read.status, read.headers['retry-after']]).to.deep.equal([503, '1']);
    expect(JSON.parse(read.text).errors[0]).to.match(/^the node did not answer; a token with a limited number of uses/);
    const change = await send(port, 'POST', '/', { 'Content-Length': '0' });
    expect([change.status, JSON.parse(change.text).errors]).to.deep.equal([
      504,
      ['outcome unknown, the change may still take effect: the node did not answer'],
    ]);
  });

  it('is answered 503 when the main thread does not listen', async () => {
    const { port, socketPath } = await gatewayOf((_req, res) => res.end('served'));
    rmSync(socketPath);
    const { status, headers, text } = await send(port, 'POST', '/', { 'Content-Length': '0' });
    expect([status, headers['retry-after']]).to.deep.equal([503, '1']);
    expect(text).to.contain('nothing was done');
  });

  it('is refused by the main thread if it does not come from a gateway', async () => {
    const { socketPath } = await gatewayOf((_req, res) => res.end('served'));
    expect(statSync(socketPath).mode & 0o777).to.equal(0o600);
    for (const header of ['', 'guess 0 1 127.0.0.1']) {
      const outcome = await new Promise((resolve) => {
        const sent = request({ socketPath, path: '/', headers: { 'x-transitd-gateway': header } }, () => resolve('served'));
        sent.on('error', () => resolve('cut'));
        sent.end();
      });
      expect(outcome).to.equal('cut');
    }
  });

  it('reaches a main thread whose data directory has a long path', async () => {
    const folder = mkdtempSync(join(tmpdir(), `gateways-${'long'.repeat(30)}-`));
    const { port } = await gatewayOf((_req, res) => res.end('served'), folder);
    expect((await send(port, 'GET', '/', {})).text).to.equal('served');
  });
});
