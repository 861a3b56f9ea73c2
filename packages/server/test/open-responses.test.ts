// @live
import { once } from 'node:events';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { sendReply } from '@transitd/http';
import { expect } from 'chai';
import { until } from '../../process/test/until.ts';
import { createListener, Listener } from '../src/listener.ts';

const get = 'GET /a HTTP/1.1\r\nHost: x\r\n\r\n';
const half = 'POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf';
const chunked = 'POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
const list = 'LIST /a HTTP/1.1\r\nHost: x\r\n\r\n';
const target = 'example:443 HTTP/1.1\r\nHost: x\r\n\r\n';
const upgrade = 'GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

describe('the responses of a connection', () => {
  let server: Server;
  let listener: Listener;
  const sockets: Socket[] = [];
  /** Every response, with the number of its close events. */
  const closed = new Map<ServerResponse, number>();

  const start = async (handle: RequestListener): Promise<void> => {
    const count = (_req: unknown, res: ServerResponse): void => {
      closed.set(res, 0);
      res.on('close', () => closed.set(res, (closed.get(res) ?? 0) + 1));
    };
    listener = new Listener(handle, (counted) => {
      server = createListener({ tls: undefined, headers_timeout: 60_000 }, counted);
      return server.prependListener('request', count);
    });
    await listener.listen({ host: '127.0.0.1', port: 0 });
  };
  const dial = async (): Promise<Socket> => {
    const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
    sockets.push(socket);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  beforeEach(() => closed.clear());
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await listener.drain();
  });

  const reset = (socket: Socket) => void socket.resetAndDestroy();
  const leave = (socket: Socket) => void socket.destroy();
  for (const { ending, sent, next } of [
    { ending: 'CONNECT, then a reset', sent: `CONNECT ${target}`, next: reset },
    { ending: 'CONNECT and another request', sent: `CONNECT ${target}${get}`, next: leave },
    { ending: 'a request to upgrade', sent: upgrade, next: leave },
    { ending: 'an HTTP/2 preface', sent: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', next: leave },
    { ending: 'garbage', sent: '\x16\x03\x01', next: leave },
    { ending: 'a malformed chunk', sent: `${chunked}zz\r\n`, next: leave },
    { ending: 'half a body, then a reset', sent: half, next: reset },
    { ending: 'half a header, then a reset', sent: get.slice(0, 9), next: reset },
    { ending: 'a LIST', sent: list, next: leave },
    { ending: 'only a half-close', sent: '', next: (socket: Socket) => void socket.end() },
    { ending: 'only a reset', sent: '', next: reset },
  ]) {
    it(`are each closed once when pipelined requests are followed by ${ending}`, async () => {
      await start(() => undefined);
      const socket = await dial();
      socket.resume().write(get.repeat(5));
      await until(() => closed.size === 5);
      if (sent !== '') socket.write(sent);
      next(socket);
      await until(() => [...closed.values()].every((times) => times > 0));
      expect([...closed.values()]).to.deep.equal([...closed].map(() => 1));
      expect([...closed.keys()].every((res) => res.destroyed && res.closed)).to.equal(true);
    });
  }

  it('are closed when a LIST is followed by CONNECT in the same packet', async () => {
    let gone = 0;
    await start((_req, res) => void res.once('close', () => (gone += 1)));
    const socket = await dial();
    socket.resume().write(`${list}CONNECT ${target}`);
    await until(() => gone === 1);
  });

  it('are written completely before CONNECT is refused, even if the caller reads slowly', async () => {
    const bytes = 20_000_000;
    await start((_req, res) => {
      const stream = new PassThrough();
      sendReply(res, { status: 200, stream }, { head: false });
      for (let sent = 0; sent < bytes; sent += 1_000_000) stream.write(Buffer.alloc(1_000_000, 'x'));
      stream.end();
    });
    const socket = await dial();
    let received = 0;
    let last = '';
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      last = (last + chunk.toString('latin1')).slice(-2000);
    });
    socket.write(`${get}${get}CONNECT ${target}`);
    await once(socket, 'end');
    expect(received).to.be.above(2 * bytes);
    expect(last).to.contain('HTTP/1.1 405');
  });

  it('are sent in order, and none after a response that closes the connection', async () => {
    const served: string[] = [];
    const answers: (() => void)[] = [];
    await start((req, res) => {
      served.push(req.url ?? '');
      answers.push(() => {
        if (req.url === '/2') res.setHeader('Connection', 'close');
        res.end();
      });
    });
    const socket = await dial();
    socket.resume().write(['/1', '/2', '/3'].map((path) => get.replace('/a', path)).join(''));
    await until(() => closed.size === 3);
    expect(served).to.deep.equal(['/1']);
    answers[0]?.();
    await until(() => served.length === 2);
    answers[1]?.();
    await once(socket, 'end');
    socket.destroy();
    await until(() => [...closed.values()].every((times) => times === 1));
    expect(served).to.deep.equal(['/1', '/2']);
  });

  it('limit the requests read in one event-loop turn, over all connections', async () => {
    await start((_req, res) => void res.end());
    let accepted = 0;
    server.on('connection', () => (accepted += 1));
    const opened = await Promise.all(Array.from({ length: 30 }, dial));
    await until(() => accepted === opened.length);
    let inTurn = 0;
    let most = 0;
    server.prependListener('request', () => {
      if (inTurn === 0) setImmediate(() => (inTurn = 0));
      inTurn += 1;
      most = Math.max(most, inTurn);
    });
    const each = 800;
    for (const socket of opened) socket.resume().write(get.repeat(each));
    await until(() => closed.size === opened.length * each);
    await until(() => [...closed.values()].every((times) => times === 1));
    expect(most).to.be.above(500).and.below(4000);
  });

  it('stop reading from a connection with many pending requests', async () => {
    const first: ServerResponse[] = [];
    await start((_req, res) => void (first.length < 2 ? first.push(res) : res.end()));
    const socket = await dial();
    const all = 50_000;
    socket.resume().write(get.repeat(all));
    await until(() => closed.size > 1);
    const other = await dial();
    other.resume().write(get);
    await until(() => first.length === 2);
    expect(closed.size).to.be.below(all / 4);
    for (const res of first) res.end(); // the pending requests are served now
    await until(() => closed.size === all + 1 && [...closed.values()].every((times) => times === 1));
  });
});
