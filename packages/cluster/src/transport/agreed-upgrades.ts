import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';

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
