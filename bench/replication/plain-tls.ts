import { connect, createServer } from 'node:tls';

const chunkBytes = 256 * 1024;

/** Returns the seconds in which bytes are sent over TLS on the loopback interface, both ends in this process. */
export async function plainTlsSeconds(
  bytes: number,
  { key, certificate }: { key: string; certificate: string },
): Promise<number> {
  const server = createServer({ key, cert: certificate, minVersion: 'TLSv1.3' });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
  const { promise, resolve } = Promise.withResolvers<number>();
  server.on('secureConnection', (socket) => {
    const startMs = performance.now();
    let received = 0;
    socket.on('data', (data) => {
      received += data.length;
      if (received >= bytes) resolve((performance.now() - startMs) / 1000);
    });
  });
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  const chunk = Buffer.alloc(chunkBytes, 'x');
  for (let sent = 0; sent < bytes; sent += chunkBytes)
    if (!socket.write(chunk)) await new Promise((drained) => socket.once('drain', drained));
  const seconds = await promise;
  socket.destroy();
  server.close();
  return seconds;
}
