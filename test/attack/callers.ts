// Callers with different loopback addresses: nodes count requests by address.
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';

export interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

export interface Sent {
  readonly body?: unknown;
  readonly token?: string;
  /** The caller's address; default: chosen by the system. */
  readonly from?: string;
  readonly withinMs?: number;
}

/** Sends one request on its own connection. @param node - its API address */
export async function ask(
  node: string,
  method: string,
  path: string,
  { body, token, from, withinMs = 120_000 }: Sent = {},
): Promise<Answered> {
  const sent = request(`${node}/v1/${path}`, {
    method,
    agent: false,
    localAddress: from,
    headers: { ...(token !== undefined && { 'X-Service-Token': token }) },
    signal: AbortSignal.timeout(withinMs),
  });
  sent.end(body === undefined || body instanceof Uint8Array ? body : JSON.stringify(body));
  const [answer]: IncomingMessage[] = await once(sent, 'response');
  if (answer === undefined) throw new Error('no answer');
  return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) };
}

/** Returns the head of a POST request. */
export const head = (path: string, length: number | 'chunked', token?: string): string =>
  [
    `POST /v1/${path} HTTP/1.1`,
    'Host: node',
    ...(token === undefined ? [] : [`X-Service-Token: ${token}`]),
    length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`,
    '\r\n',
  ].join('\r\n');

/** Open connections that have sent something and read no response; `end` closes them. */
export class HeldConnections {
  readonly #sockets: Socket[] = [];

  /** Opens a connection and sends `sent` on it. Returns the socket. */
  async open(node: string, sent: string, from?: string): Promise<Socket> {
    const { hostname, port } = new URL(node);
    const socket = connect({ port: Number(port), host: hostname, ...(from !== undefined && { localAddress: from }) });
    this.#sockets.push(socket);
    socket.on('error', () => undefined); // the server may close the connection
    await once(socket, 'connect');
    socket.write(sent);
    return socket;
  }

  end(): void {
    for (const socket of this.#sockets.splice(0)) socket.destroy();
  }
}

/** Keeps `atOnce` requests in flight until `end`; counts the responses by status. */
export class Flood {
  readonly statuses = new Map<number, number>();
  #ended = false;
  readonly #callers: readonly Promise<void>[];

  constructor(atOnce: number, once: () => Promise<Answered>) {
    this.#callers = Array.from({ length: atOnce }, async () => {
      while (!this.#ended) {
        const status = await once().then(
          (answer) => answer.status,
          () => 0,
        );
        this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      }
    });
  }

  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all(this.#callers);
  }
}
