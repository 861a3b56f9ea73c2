import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { callerGroup } from '@transitd/access';

/** Pipelined requests read in one event-loop turn: some 10 ms. */
const pipelinedMax = 500;
/** Maximum waiting pipelined requests over all connections: a few KiB each, 200 MB in all. */
const waitingMax = 32_768;

/**
 * Limits the pipelined requests read in one event-loop turn and counts those that wait, over all connections. One read returns up to
 * 64 KiB, which can be 2,500 heads, and all readable sockets would be read in the same turn. Clients that do not pipeline are read first,
 * however many connections of others are readable.
 */
export class Reading {
  readonly #sockets = new Set<Socket>();
  /** Read in this turn. */
  #pipelined = 0;
  /** Addresses that pipelined since the last turn below the limit. */
  readonly #callers = new Set<string>();
  #waiting = 0;
  readonly #waitingMax: number;

  /** @param max - waiting requests that are not yet too many */
  constructor(max: number = waitingMax) {
    this.#waitingMax = max;
  }

  /** Whether more requests wait than there is memory for. */
  get isCrowded(): boolean {
    return this.#waiting > this.#waitingMax;
  }

  /** Watches the connections of `server`. */
  watch(server: Server): void {
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Counts a request that waits for an earlier one, until `begins`. Above the limit, reading pauses until the next turn. */
  pipelined(socket: Pick<Socket, 'remoteAddress'>): void {
    this.#waiting += 1;
    this.#pipelined += 1;
    if (this.#pipelined === 1) setImmediate(this.#onTurnEnd);
    this.#callers.add(callerOf(socket));
    if (this.#pipelined === pipelinedMax) this.#pause();
  }

  /** Counts a waiting request that begins. */
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

/** One for this process, which has one event loop. */
export const reading = new Reading();
