import type { Socket } from 'node:net';
import { callerGroup } from '@transitd/process';
import type { CommonAmount } from '../limits/common-amount.ts';
import type { ThreadLimit } from '../limits/thread-limit.ts';

/** Returns a key for a connection that is the same for the TCP socket and the TLS socket on top of it. */
export const endpointOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${remoteAddress} ${remotePort}`;

/**
 * Limits client connections over all listeners of a thread. Above the limit it finds the address with the most connections and closes the
 * oldest connection of that address without a complete request. So a client that opens many connections and sends nothing, or sends slowly,
 * only displaces its own connections, and a probe or an operator can still connect. That holds for each thread, because each has places
 * that no other thread can take.
 */
export class Connections {
  readonly #own: number;
  readonly #common: CommonAmount | undefined;
  /** Connections by IPv4 address or IPv6 network, oldest first. */
  readonly #of = new Map<string, Set<Socket>>();
  /** For each listener, the function that was passed to `add`. */
  readonly #atWork = new Set<() => ReadonlySet<string>>();
  #open = 0;
  #evicted = 0;

  constructor({ own, common }: Pick<ThreadLimit, 'own' | 'common'>) {
    this.#own = own;
    this.#common = common;
  }

  /** Of this thread. */
  get open(): number {
    return this.#open;
  }

  /** Connections closed to make room, since the start. */
  get evicted(): number {
    return this.#evicted;
  }

  /**
   * @param atWork - returns the endpoints of the connections of this listener that have a complete request in progress; called only above
   * the limit
   */
  add(socket: Socket, atWork: () => ReadonlySet<string>): void {
    const address = callerGroup(socket.remoteAddress ?? '');
    this.#atWork.add(atWork);
    this.#of.set(address, (this.#of.get(address) ?? new Set()).add(socket));
    this.#open += 1;
    if (this.#open > this.#own) this.#common?.take(1); // taken before it is counted: threads that exceed the limit together notice it
    socket.once('close', () => this.#forget(address, socket));
    if (this.#isOver()) this.#makeRoom(address, socket);
  }

  #isOver(): boolean {
    if (this.#open <= this.#own) return false;
    return this.#common === undefined || this.#common.taken > this.#common.max;
  }

  #makeRoom(address: string, newest: Socket): void {
    this.#evicted += 1;
    const atWork = new Set([...this.#atWork].flatMap((endpoints) => [...endpoints()]));
    let most: readonly [address: string, sockets: ReadonlySet<Socket>] = [address, new Set()];
    for (const entry of this.#of) if (entry[1].size > most[1].size) most = entry;
    const silent = [...most[1]].find((socket) => !atWork.has(endpointOf(socket)));
    if (silent === undefined) this.#end(address, newest);
    else this.#end(most[0], silent);
  }

  #end(address: string, socket: Socket): void {
    this.#forget(address, socket);
    socket.destroy();
  }

  #forget(address: string, socket: Socket): void {
    const own = this.#of.get(address);
    if (own?.delete(socket) !== true) return;
    if (this.#open > this.#own) this.#common?.giveBack(1);
    this.#open -= 1;
    if (own.size === 0) this.#of.delete(address);
  }
}
