import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

/** Requests behind others on their connections that are read in one turn of the event loop: some 10 ms. */
const pipelinedMax = 500;
/** Requests that wait behind others on their connections, over all of them, before memory is short: a few KiB each, 200 MB in all. */
const waitingMax = 32_768;

/**
 * Bounds how many pipelined requests are read in one turn of the event loop, and counts those that wait, over all connections. One read brings up to 64 KiB, which
 * can be 2,500 heads, and all sockets that have something to read would be read in the same turn.
 */
export class Reading {
  readonly #sockets = new Set<Socket>();
  /** In this turn. */
  #pipelined = 0;
  #waiting = 0;
  readonly #waitingMax: number;

  /** @param max - of requests that wait, before too many do */
  constructor(max: number = waitingMax) {
    this.#waitingMax = max;
  }

  /** Whether more requests wait than there is memory for. */
  get isCrowded(): boolean {
    return this.#waiting > this.#waitingMax;
  }

  /** Follows the connections of `server`. */
  watch(server: Server): void {
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Another request waits behind one of its connection, until `begins`. Above the bound, nothing more is read until the next turn. */
  pipelined(): void {
    this.#waiting += 1;
    this.#pipelined += 1;
    if (this.#pipelined === 1) setImmediate(() => (this.#pipelined = 0));
    if (this.#pipelined === pipelinedMax) this.#pause();
  }

  /** One of those requests waits no longer. */
  begins(): void {
    this.#waiting -= 1;
  }

  #pause(): void {
    const paused = [...this.#sockets].filter((socket) => !socket.isPaused());
    for (const socket of paused) socket.pause();
    setImmediate(() => {
      for (const socket of paused) socket.resume();
    });
  }
}

/** Of this process, which has one event loop. */
export const reading = new Reading();
