// @live
import { once } from 'node:events';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, createServer as createSilentServer, type Socket } from 'node:net';
import { expect } from 'chai';
import { connectEtcd } from '../../src/client/connect-etcd.ts';
import { type Etcd, EtcdError } from '../../src/etcd.ts';

describe('the connection to a member of etcd', () => {
  const sockets = new Set<Socket>();
  const server = createServer();
  let connections = 0;
  let answer: (stream: ServerHttp2Stream) => void;
  let endpoint = '';
  before(async () => {
    server.on('connection', (socket) => {
      connections += 1;
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

  /** An answer of etcd (gRPC), of the shortest form. */
  const refuse = (stream: ServerHttp2Stream): void => {
    const status = { 'grpc-status': '3', 'grpc-message': 'etcdserver: no' };
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...status }, { endStream: true });
  };
  const breakAll = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  /** Resolves with the kind and the text of a failure. */
  const outcome = (etcd: Etcd): Promise<string> =>
    etcd.range({ key: 'a' }).then(
      () => 'answered',
      (error: unknown) => {
        if (error instanceof EtcdError) return `${error.kind}: ${error.message}`;
        throw error;
      },
    );

  it('is opened again after it broke, also by a request that begins at once', async () => {
    const etcd = connectEtcd({ endpoint });
    for (let i = 0; i < 20; i++) {
      answer = breakAll;
      const [first, second] = [outcome(etcd), outcome(etcd)];
      expect(await first).to.match(/^unknown/);
      answer = refuse;
      await second;
      expect(await outcome(etcd)).to.equal('refused: etcdserver: no');
    }
    etcd.close();
  });

  it('ends when a ping gets no answer while a request is open', async () => {
    const silent = createSilentServer((socket) => void socket.on('error', () => undefined).resume()).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const pings = { pingIntervalMs: 10, pingTimeoutMs: 50 };
    const etcd = connectEtcd({ endpoint: `http://127.0.0.1:${port}`, timeoutMs: 200_000, pings });
    expect(await outcome(etcd)).to.match(/^unknown: PING timed out/);
    etcd.close();
    silent.close();
  });

  it('fails the request, and not the process, when nobody listens', async () => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    expect(await outcome(connectEtcd({ endpoint: `http://127.0.0.1:${port}` }))).to.match(/^unknown: .*ECONNREFUSED/);
  });

  it('is not opened again by a closed client, whose calls fail: those that wait for it, that are open on it, and later ones', async () => {
    let arrived: () => void = () => undefined;
    const isOpen = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    answer = () => arrived();
    const [waiting, open] = [connectEtcd({ endpoint }), connectEtcd({ endpoint })];
    const ofOpen = outcome(open);
    await isOpen;
    const ofWaiting = outcome(waiting);
    for (const etcd of [waiting, open]) etcd.close();
    for (const call of [ofWaiting, ofOpen]) expect(await call).to.match(/^unknown/);
    const before = connections;
    for (const etcd of [waiting, open]) expect(await outcome(etcd)).to.match(/^unknown/);
    expect(connections).to.equal(before);
  });
});
