import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { callerGroup } from '@transitd/access';

/** Requests behind others on their connections that are read in one turn of the event loop: some 10 ms. */
const pipelinedMax = 500;
/** Requests that wait behind others on their connections, over all of them, before memory is short: a few KiB each, 200 MB in all. */
const waitingMax = 32_768;

/**
 * Bounds how many pipelined requests are read in one turn of the event loop, and counts those that wait, over all connections. One read
 * brings up to 64 KiB, which can be 2,500 heads, and all sockets that have something to read would be read in the same turn. Callers that
 * do not pipeline are read first, however many connections of others are to be read.
 */
export class Reading {
  readonly #sockets = new Set<Socket>();
  /** In this turn. */
  #pipelined = 0;
  /** Callers, by address, that have brought them since the last turn that had fewer than the bound. */
  readonly #callers = new Set<string>();
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
  pipelined(socket: Pick<Socket, 'remoteAddress'>): void {
    this.#waiting += 1;
    this.#pipelined += 1;
    if (this.#pipelined === 1) setImmediate(this.#onTurnEnd);
    this.#callers.add(callerOf(socket));
    if (this.#pipelined === pipelinedMax) this.#pause();
  }

  /** One of those requests waits no longer. */
  begins(): void {
    this.#waiting -= 1;
  }

  readonly #onTurnEnd = (): void => {
    if (this.#pipelined < pipelinedMax) this.#callers.clear();
    this.#pipelined = 0;
  };

  #pause(): void {
    const paused = [...this.#sockets].filter((socket) => !socket.isPaused());
    for (const socket of paused) socket.pause();
    setImmediate(() => {
      // Sockets that have something to read are read in the order in which they were resumed.
      const later: Socket[] = [];
      for (const socket of paused) {
        if (this.#callers.has(callerOf(socket))) later.push(socket);
        else socket.resume();
      }
      for (const socket of later) socket.resume();
    });
  }
}

const callerOf = ({ remoteAddress }: Pick<Socket, 'remoteAddress'>): string => callerGroup(remoteAddress ?? '');

/** Of this process, which has one event loop. */
export const reading = new Reading();
