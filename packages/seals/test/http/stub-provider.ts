import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface StubRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Empty if the body is not JSON. */
  readonly body: Record<string, unknown>;
  readonly text: string;
}

/** The answer to a request: a status and a body, or a function that answers by itself or not at all. */
export type StubAnswer =
  | readonly [status: number, body: unknown, headers?: Record<string, string>]
  | ((res: ServerResponse) => void);

/** An HTTP server on loopback that answers as a test says. */
export async function stubProvider(answer: (request: StubRequest) => StubAnswer) {
  const requests: StubRequest[] = [];
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const { method = '', url = '', headers } = req;
    const isJson = text.startsWith('{');
    const request = { method, path: url, headers, body: isJson ? (JSON.parse(text) as Record<string, unknown>) : {}, text };
    requests.push(request);
    const given = answer(request);
    if (typeof given === 'function') return given(res);
    const [status, body, more = {}] = given;
    res.writeHead(status, more).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, close };
}
