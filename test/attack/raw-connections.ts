import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { LiveServer } from '../process/live-server.ts';

/** Connections over which a test sends bytes that no HTTP client would send. Input is discarded unless the test reads it. */
export class RawConnections {
  readonly #sockets = new Set<Socket>();

  /** Resolves when the connection is open. It is not an error if the server closes the connection. */
  async open(url: string, sent = ''): Promise<Socket> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    this.#sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    const connected = once(socket, 'connect').catch(() => undefined);
    await Promise.race([connected, new Promise((resolve) => socket.once('close', resolve))]);
    if (sent !== '') socket.write(sent, 'latin1');
    return socket;
  }

  /** The number of connections that neither side has closed. */
  get size(): number {
    return this.#sockets.size;
  }

  closeAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Returns the address of the metrics page. */
export const telemetryOf = async (server: LiveServer): Promise<string> =>
  (await server.log(/"telemetry":"(http[^"]+)"/))[1] ?? '';

/** Returns one metric, requested on its own connection. */
export async function figureOf(telemetry: string, name: string): Promise<number> {
  const page = await (await fetch(`${telemetry}/metrics`, { headers: { Connection: 'close' } })).text();
  const line = page.split('\n').find((each) => each.startsWith(`${name} `));
  if (line === undefined) throw new Error(`no figure ${name} in\n${page}`);
  return Number(line.slice(name.length + 1));
}
