import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';

/** Makes the connection of a request; `done` is called once. */
export type Connect = (done: (error: Error | null, socket?: Duplex) => void) => void;

/** Returns the option of `node:http` by which a request gets its connection from `connect`. */
export const connectionBy = (connect: Connect) =>
  ({ createConnection: ((_options: unknown, done: Parameters<Connect>[0]) => connect(done)) as never }) as const;

interface WebSocketTarget {
  /** `host:port`. */
  readonly address: string;
  readonly path: string;
  readonly protocols: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Maximum size of a frame of the other end. */
  readonly frameBytesMax: number;
  /** Limit for the answer to the upgrade. */
  readonly handshakeMsMax: number;
}

/** Opens a WebSocket over a connection that `connect` makes and checks. */
export const openWebSocket = (
  { address, path, protocols, headers = {}, frameBytesMax, handshakeMsMax }: WebSocketTarget,
  connect: Connect,
): WebSocket =>
  new WebSocket(`wss://${address}${path}`, [...protocols], {
    headers,
    perMessageDeflate: false,
    maxPayload: frameBytesMax,
    handshakeTimeout: handshakeMsMax,
    generateMask: () => undefined, // zeros: masks protect plaintext proxies, and TLS excludes those
    ...connectionBy(connect),
  });
