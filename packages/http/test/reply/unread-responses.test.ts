// @live
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { sendReply } from '../../src/reply/send.ts';
import { UnreadResponses, unreadResponses } from '../../src/reply/unread-responses.ts';

describe('responses that are not read', () => {
  /** A response that records whether it was closed. */
  const response = () => {
    let close: () => void = () => undefined;
    const res = {
      isClosed: false,
      once: (_: string, listener: () => void) => (close = listener),
      destroy: () => (res.isClosed = true),
    };
    return { res: res as unknown as ServerResponse & { isClosed: boolean }, end: () => close() };
  };

  it('cost the caller with the most of them its oldest one above the limit', () => {
    const unread = new UnreadResponses(100);
    const other = response().res;
    const own = Array.from({ length: 4 }, () => response().res);
    unread.add(other, 'b', 30);
    for (const res of own) unread.add(res, 'a', 30);
    expect([...own, other].map(({ isClosed }) => isClosed)).to.deep.equal([true, true, false, false, false]);
    expect([unread.bytes, unread.closed]).to.deep.equal([90, 2]);
  });

  it('may exceed the limit only by one, the newest, which displaces others if its caller has no more', () => {
    const unread = new UnreadResponses(100);
    const [small, large, later] = [response(), response(), response()];
    unread.add(small.res, 'a', 10);
    unread.add(large.res, 'b', 500);
    expect([small.res.isClosed, large.res.isClosed, unread.bytes]).to.deep.equal([true, false, 500]);
    unread.add(later.res, 'c', 10);
    expect([large.res.isClosed, unread.bytes]).to.deep.equal([true, 10]);
  });

  it('count until they end, however they end', () => {
    const unread = new UnreadResponses(100);
    const [one, two] = [response(), response()];
    unread.add(one.res, 'a', 60);
    one.end();
    expect(unread.bytes).to.equal(0);
    unread.add(one.res, 'a', 60);
    unread.add(two.res, 'a', 60);
    one.end(); // the end of the connection that was closed
    expect([unread.bytes, unread.closed]).to.deep.equal([60, 1]);
    two.end();
    expect(unread.bytes).to.equal(0);
  });

  describe('of a server', () => {
    let server: Server;
    const sockets: Socket[] = [];
    afterEach(() => {
      for (const socket of sockets.splice(0)) socket.destroy();
      server.close();
      unreadResponses.limit(128 * 1024 * 1024);
    });

    // More than the buffers of the kernel take.
    const length = 20_000_000;
    const answers = {
      'in pieces': Array.from({ length: 20 }, () => Buffer.alloc(1_000_000, 65)),
      'as a text that is read in pieces': 'A'.repeat(length),
      'as a text that is written at once': 'é'.repeat(length / 2),
    };
    for (const [how, body] of Object.entries(answers)) {
      it(`are counted if they are long, and closed above the limit: ${how}`, async () => {
        unreadResponses.limit(2.5 * length);
        server = createServer((_req, res) => sendReply(res, { status: 200, body }, { head: false })).listen(0, '127.0.0.1');
        await once(server, 'listening');
        const ask = async (): Promise<Socket> => {
          const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
          socket.on('error', () => undefined); // a connection that was closed
          sockets.push(socket);
          await once(socket, 'connect');
          socket.write('GET / HTTP/1.1\r\nHost: n1\r\n\r\n');
          return socket;
        };
        const before = unreadResponses.closed;
        await Promise.all(Array.from({ length: 4 }, ask));
        await until(() => unreadResponses.closed > before);
        expect(unreadResponses.bytes).to.be.at.most(2.5 * length);
        for (const socket of sockets.splice(0)) socket.destroy();
        await until(() => unreadResponses.bytes === 0);
        const reader = await ask();
        let read = 0;
        reader.on('data', (chunk) => (read += chunk.length)).resume();
        await until(() => read > length);
        await until(() => unreadResponses.bytes === 0);
      });
    }
  });
});
