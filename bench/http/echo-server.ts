// A minimal server on `node:http`, for comparison: it reads a body and sends it back. Prints its port. Ends when its parent process ends.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.byteLength });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.(address.port);
});
process.on('disconnect', () => process.exit(0));
