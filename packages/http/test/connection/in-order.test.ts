// @live
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { inOrder } from '../../src/connection/in-order.ts';
import { OpenResponses } from '../../src/connection/open-responses.ts';
import { Reading } from '../../src/connection/reading.ts';

const get = 'GET /a HTTP/1.1\r\nHost: x\r\n\r\n';

describe('pipelined requests', () => {
  const reading = new Reading(1000);
  let server: Server;
  const first: ServerResponse[] = [];
  const sockets: Socket[] = [];
  let closed = 0;

  /** Sends `count` requests at once on a new connection, and keeps reading. */
  const send = async (requests: number): Promise<{ readonly socket: Socket; readonly answers: () => number }> => {
    const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
    sockets.push(socket);
    let answers = 0;
    socket.on('data', (chunk: Buffer) => (answers += chunk.toString('latin1').split('HTTP/1.1 200').length - 1));
    socket.on('error', () => undefined).on('close', () => (closed += 1));
    await once(socket, 'connect');
    const before = first.length;
    socket.write(get.repeat(requests));
    await until(() => first.length > before || socket.destroyed);
    return { socket, answers: () => answers };
  };

  before(async () => {
    const open = new OpenResponses();
    const seen = new WeakSet<Socket>();
    const serve = inOrder(
      open,
      (req, res) => {
        if (seen.has(req.socket)) return void res.end();
        seen.add(req.socket);
        first.push(res); // the other requests wait for this response
      },
      reading,
    );
    server = createServer(serve).listen(0, '127.0.0.1');
    open.watch(server);
    await once(server, 'listening');
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it('are dropped with their connection when too many wait overall, unless the connection has only a few', async () => {
    const early = await send(600);
    for (let n = 0; n < 5; n += 1) await send(600);
    const few = await send(4);
    await until(() => closed === 5);
    expect(reading.closed).to.equal(5);
    expect(reading.waiting).to.be.within(599, 1000);
    await until(() => !reading.isCrowded);
    expect([early.socket.destroyed, few.socket.destroyed], 'those that were there, and those with few').to.deep.equal([
      false,
      false,
    ]);
    for (const res of first) if (!res.destroyed) res.end();
    await until(() => early.answers() === 600 && few.answers() === 4);
    const late = await send(600);
    first.at(-1)?.end();
    await until(() => late.answers() === 600);
    expect(reading.waiting).to.equal(0);
  });
});
