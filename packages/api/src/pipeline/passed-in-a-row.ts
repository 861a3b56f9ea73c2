import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests in a row after which a connection is closed. A client with a mix of requests rarely sends so many. */
const inARowMax = 16;

/**
 * Closes connections to a gateway whose requests all run in the main thread, because each of them is parsed twice. The client connects
 * again, sooner or later to the main thread. `Connection: close` in an answer loses nothing: the client knows that it may not send more.
 */
export class PassedInARow {
  readonly #passed = new WeakMap<Socket, number>();

  /** Call it before the request is passed. */
  passed({ socket }: IncomingMessage, res: ServerResponse): void {
    const passed = (this.#passed.get(socket) ?? 0) + 1;
    this.#passed.set(socket, passed);
    if (passed >= inARowMax) res.shouldKeepAlive = false;
  }

  /** This thread may answer the request itself. */
  served({ socket }: IncomingMessage): void {
    this.#passed.delete(socket);
  }
}
