import type { Socket } from 'node:net';
import { callerGroup } from '@transitd/access';

/** By which a connection is known on all its layers, TLS among them. */
export const endpointOf = ({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
  `${remoteAddress} ${remotePort}`;

/**
 * Connections of clients at a time, over all listeners. When there are too many, room is made where most of them are: of the address that
 * has the most, the oldest connection goes that brings no whole request. So whoever opens connections and keeps silent, or speaks slowly,
 * drives out its own, and a probe or an operator still gets in.
 */
export class Connections {
  readonly #max: number;
  /** By address, or network of IPv6, each oldest first. */
  readonly #of = new Map<string, Set<Socket>>();
  /** Of all listeners. */
  readonly #atWork = new Set<() => ReadonlySet<string>>();
  #open = 0;
  #cut = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get open(): number {
    return this.#open;
  }

  /** Since the start. */
  get cut(): number {
    return this.#cut;
  }

  /** @param atWork - endpoints of this listener that have a whole request under way; asked only when there are too many connections */
  add(socket: Socket, atWork: () => ReadonlySet<string>): void {
    const address = callerGroup(socket.remoteAddress ?? '');
    this.#atWork.add(atWork);
    this.#of.set(address, (this.#of.get(address) ?? new Set()).add(socket));
    this.#open += 1;
    socket.once('close', () => this.#forget(address, socket));
    if (this.#open > this.#max) this.#makeRoom(address, socket);
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
    if (own.size === 0) this.#of.delete(address);
  }
}
