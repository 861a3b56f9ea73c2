import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { bodyText, type Reply } from '@transitd/http';
import { nodeHttp } from '@transitd/process';
import { type WebSocket, WebSocketServer } from 'ws';

export function targetOf({ url = '' }: IncomingMessage): { readonly path: string; readonly query: URLSearchParams } {
  const at = url.indexOf('?');
  if (at === -1) return { path: url, query: new URLSearchParams() };
  return { path: url.slice(0, at), query: new URLSearchParams(url.slice(at + 1)) };
}

/** Returns the name of a call, as in `calls`. */
export const callOf = (req: IncomingMessage): string => `${req.method} ${targetOf(req).path}`;

/** Returns the WebSocket subprotocols that a caller offers. */
export const offeredBy = ({ headers }: IncomingMessage): ReadonlySet<string> =>
  new Set(headers['sec-websocket-protocol']?.split(',').map((protocol) => protocol.trim()));

/** Answers a request for a stream with a refusal, and ends the connection. */
export function refuseUpgrade(socket: Duplex, reply: Reply): void {
  const { status, headers = {} } = reply;
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const body = bodyText(reply) ?? '';
  const length = Buffer.byteLength(body);
  socket.end(
    `HTTP/1.1 ${status} ${nodeHttp().STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${more.join('')}\r\n${body}`,
  );
}

/** Accepts WebSockets with a subprotocol that was chosen beforehand. */
export class AgreedUpgrades {
  readonly #agreed = new WeakMap<IncomingMessage, string>();
  readonly #server: WebSocketServer;

  /** @param frameBytesMax - maximum size of a frame; a longer one ends the connection */
  constructor(frameBytesMax: number) {
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: frameBytesMax,
      handleProtocols: (_offered, req) => this.#agreed.get(req) ?? false,
    });
  }

  /** Upgrades the connection of a request. @param protocol - one of those that the request offers */
  accept(
    req: IncomingMessage,
    { socket, head, protocol }: { readonly socket: Duplex; readonly head: Buffer; readonly protocol: string },
    serve: (webSocket: WebSocket) => void,
  ): void {
    this.#agreed.set(req, protocol);
    this.#server.handleUpgrade(req, socket, head, serve);
  }
}
