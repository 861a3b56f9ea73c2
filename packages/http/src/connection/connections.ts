import type { Socket } from 'node:net';
import { callerGroup } from '@transitd/access';

/** Returns a key for a connection that is the same for the TCP socket and the TLS socket on top of it. */
export const endpointOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${remoteAddress} ${remotePort}`;

/** A number that several threads change; each has its own part of it. */
export interface Count {
  /** Adds this to the part of this thread. */
  add(change: number): void;
  /** The parts of all threads. */
  readonly sum: number;
}

/**
 * Limits client connections over all listeners, and over all threads that share a count. Above the limit it finds the address with the most
 * connections and closes the oldest connection of that address without a complete request. So a client that opens many connections and
 * sends nothing, or sends slowly, only displaces its own connections, and a probe or an operator can still connect. A thread closes
 * connections of its own only.
 */
export class Connections {
  readonly #max: number;
  readonly #count: Count | undefined;
  /** Connections by IPv4 address or IPv6 network, oldest first. */
  readonly #of = new Map<string, Set<Socket>>();
  /** For each listener, the function that was passed to `add`. */
  readonly #atWork = new Set<() => ReadonlySet<string>>();
  #open = 0;
  #cut = 0;

  /** @param count - counts the connections of all threads; without it, this thread serves alone */
  constructor(max: number, count?: Count) {
    this.#max = max;
    this.#count = count;
  }

  /** Of this thread. */
  get open(): number {
    return this.#open;
  }

  /** Since the start. */
  get cut(): number {
    return this.#cut;
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
    this.#count?.add(1); // before the sum is read: of two threads that exceed the limit together, at least one notices
    socket.once('close', () => this.#forget(address, socket));
    if ((this.#count?.sum ?? this.#open) > this.#max) this.#makeRoom(address, socket);
  }

  #makeRoom(address: string, newest: Socket): void {
    this.#cut += 1;
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
    this.#open -= 1;
    this.#count?.add(-1);
    if (own.size === 0) this.#of.delete(address);
  }
}
