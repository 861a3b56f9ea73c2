import { connect, createServer, type Socket } from 'node:net';

/** A network path between two nodes that can silently lose everything, in both directions. */
export interface TcpProxy {
  readonly port: number;
  /** Connections made so far. */
  readonly connections: () => number;
  /** Open connections stop carrying data forever, as after a partition with long retransmission times. New connections work. */
  freeze(): void;
  close(): void;
}

export function tcpProxy(targetPort: () => number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((near) => {
    connections++;
    const far = connect({ host: '127.0.0.1', port: targetPort() });
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one
        .on('error', () => undefined)
        .on('close', () => {
          if (!frozen.has(one)) other.destroy();
        });
      one.pipe(other);
    }
  });
  const frozen = new WeakSet<Socket>();
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve({
        port: typeof address === 'object' && address !== null ? address.port : 0,
        connections: () => connections,
        freeze: () => {
          for (const socket of sockets) {
            frozen.add(socket);
            socket.unpipe();
            socket.pause();
          }
        },
        close: () => {
          server.close();
          for (const socket of sockets) socket.destroy();
        },
      });
    });
  });
}
