import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer as createSilentServer, type Socket } from 'node:net';
import { expect } from 'chai';
import { EtcdSessions } from '../../src/client/sessions.ts';

describe('the connection to a member of etcd', () => {
  const sockets = new Set<Socket>();
  const server = createServer();
  let answer: (stream: ServerHttp2Stream) => void;
  let endpoint = '';
  before(async () => {
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket)).on('error', () => undefined);
    });
    server.on('sessionError', () => undefined);
    server.on('stream', (stream) => {
      stream.on('error', () => undefined);
      answer(stream);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  /** Resolves with the status of a request, or with the code of its failure. */
  async function outcome(sessions: EtcdSessions): Promise<unknown> {
    const stream = await sessions.request('POST', '/', {}, {});
    stream.end();
    stream.resume();
    const [headers] = await once(stream, 'response').catch((error) => [{ ':status': error.code }]);
    return headers[':status'];
  }

  it('is opened again after it broke, also by a request that begins at once', async () => {
    const sessions = new EtcdSessions(endpoint);
    for (let i = 0; i < 20; i++) {
      answer = () => {
        for (const socket of sockets) socket.resetAndDestroy();
      };
      const [first, second] = [outcome(sessions), outcome(sessions)];
      expect(await first).to.not.equal(200);
      answer = (stream) => stream.respond({ ':status': 200 }, { endStream: true });
      await second;
      expect(await outcome(sessions)).to.equal(200);
    }
    sessions.close();
  });

  it('ends when a ping gets no answer while a request is open', async () => {
    const silent = createSilentServer((socket) => void socket.on('error', () => undefined).resume()).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const sessions = new EtcdSessions(`http://127.0.0.1:${port}`, { pingIntervalMs: 10, pingTimeoutMs: 50 });
    expect(await outcome(sessions)).to.not.equal(200);
    silent.close();
  });

  it('fails the request, and not the process, when nobody listens', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    expect(await outcome(new EtcdSessions(`http://127.0.0.1:${port}`))).to.match(/ECONNREFUSED|ERR_HTTP2/);
  });
});
