import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { callerGroup } from '@transitd/process';

/** Maximum number of pipelined requests read in one event-loop turn: about 10 ms of work. */
const pipelinedMax = 500;
/** Maximum number of waiting pipelined requests over all connections: some 20 KiB each, 90 MB in all. */
const waitingMax = 4096;

/**
 * Limits the pipelined requests read in one event-loop turn and counts those that wait, over all connections. One read returns up to 64
 * KiB, which can be 2,500 heads, and all readable sockets would be read in the same turn. Clients that do not pipeline are read first,
 * however many connections of pipelining clients are readable.
 */
export class Reading {
  readonly #sockets = new Set<Socket>();
  /** Pipelined requests read in this turn. */
  #pipelined = 0;
  /** Addresses that have sent pipelined requests. Cleared at the end of a turn that read fewer requests than its limit. */
  readonly #callers = new Set<string>();
  #waiting = 0;
  #closed = 0;
  #waitingMax: number;

  /** @param max - maximum number of waiting requests */
  constructor(max: number = waitingMax) {
    this.#waitingMax = max;
  }

  /** Divides the memory for waiting requests between this number of threads, each of which has its own instance. */
  divide(threads: number): void {
    this.#waitingMax = Math.floor(waitingMax / threads);
  }

  /** Whether more requests wait than there is memory for. */
  get isCrowded(): boolean {
    return this.#waiting > this.#waitingMax;
  }

  /** Pipelined requests that wait for an earlier request of their connection. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Connections closed since the start because more requests waited than there is memory for. */
  get closed(): number {
    return this.#closed;
  }

  /** Closes a connection that adds a request while it is crowded. */
  close(socket: Pick<Socket, 'destroy' | 'destroyed'>): void {
    if (socket.destroyed) return; // the rest of what was read before
    this.#closed += 1;
    socket.destroy();
  }

  /** Watches the connections of `server`. */
  watch(server: Server): void {
    server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /**
   * Counts a request that waits for an earlier request of its connection; `begins` ends the wait. Above the limit of one turn, reading
   * pauses until the next turn.
   */
  pipelined(socket: Pick<Socket, 'remoteAddress'>): void {
    this.#waiting += 1;
    this.#pipelined += 1;
    if (this.#pipelined === 1) setImmediate(this.#onTurnEnd);
    this.#callers.add(callerOf(socket));
    if (this.#pipelined === pipelinedMax) this.#pause();
  }

  /** Called when a waiting request begins: it no longer counts. */
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

/** The instance of this process, which has one event loop. */
export const reading = new Reading();
