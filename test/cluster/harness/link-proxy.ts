import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Lane, type SlowLink, type Treatment } from './lane.ts';

/**
 * The mode of a link, applied to the connections from one node to another. `cut` resets and refuses them. `blackhole` drops their
 * bytes, and nobody sees a reset. `hold` keeps the bytes until the link opens, as a network does that recovers and retransmits.
 * `swallow-requests` and `swallow-answers` lose one direction only.
 */
export type LinkMode = 'open' | 'cut' | 'blackhole' | 'hold' | 'swallow-requests' | 'swallow-answers' | SlowLink;

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Returns how bytes from the caller to the target are treated, and how bytes in the other direction are. */
function treatments(mode: LinkMode): readonly [requests: Treatment, answers: Treatment] {
  if (typeof mode === 'object') return [mode, mode];
  switch (mode) {
    case 'hold':
      return ['hold', 'hold'];
    case 'blackhole':
      return ['swallow', 'swallow'];
    case 'swallow-requests':
      return ['swallow', 'pass'];
    case 'swallow-answers':
      return ['pass', 'swallow'];
    default:
      return ['pass', 'pass'];
  }
}

interface Connection {
  readonly source: string;
  readonly ends: readonly [Socket, Socket];
  readonly lanes: readonly [Lane, Lane];
}

/**
 * A proxy in front of one node's cluster port. It identifies callers by their source address, so each directed link has its own
 * mode.
 */
export class LinkProxy {
  readonly #server: Server;
  readonly #target: Address;
  readonly #modes = new Map<string, LinkMode>();
  readonly #connections = new Set<Connection>();
  /** Addresses that have no link and whose connections were refused. */
  readonly strangers = new Set<string>();

  private constructor(target: Address, sources: readonly string[]) {
    this.#target = target;
    for (const source of sources) this.#modes.set(source, 'open');
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
  }

  /** @param sources - the addresses that may call @param port - to listen on; 0 for a free one */
  static async listen(target: Address, sources: readonly string[], host = '127.0.0.1', port = 0): Promise<LinkProxy> {
    const proxy = new LinkProxy(target, sources);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject).listen({ host, port }, resolve);
    });
    return proxy;
  }

  get address(): Address {
    const { address, port } = this.#server.address() as AddressInfo;
    return { host: address, port };
  }

  /** Returns the number of open connections from this address. */
  connectionsFrom(source: string): number {
    return [...this.#connections].filter((connection) => connection.source === source).length;
  }

  mode(source: string): LinkMode {
    return this.#modes.get(source) ?? 'cut';
  }

  /** Sets the mode of a link, also for its open connections. A connection that has lost bytes is reset unless it keeps losing them. */
  setMode(source: string, mode: LinkMode): void {
    this.#modes.set(source, mode);
    const [requests, answers] = treatments(mode);
    for (const connection of this.#connections) {
      if (connection.source !== source) continue;
      const [there, back] = connection.lanes;
      there.treat(requests);
      back.treat(answers);
      if (mode === 'cut' || connection.lanes.some((lane) => lane.lossy && !lane.swallows)) this.#reset(connection);
    }
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const connection of this.#connections) this.#reset(connection);
    await closed;
  }

  #accept(caller: Socket): void {
    const source = caller.remoteAddress ?? '';
    caller.on('error', () => undefined);
    const mode = this.#modes.get(source);
    if (mode === undefined) this.strangers.add(source);
    if (mode === undefined || mode === 'cut') {
      caller.resetAndDestroy();
      return;
    }
    const target = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    caller.setNoDelay(true);
    const [requests, answers] = treatments(mode);
    const lanes = [new Lane(caller, target, requests), new Lane(target, caller, answers)] as const;
    const connection: Connection = { source, ends: [caller, target], lanes };
    this.#connections.add(connection);
    for (const [index, end] of connection.ends.entries()) {
      const lane = lanes[index];
      end.on('error', () => {
        if (lane?.breaks() === true) this.#reset(connection);
      });
      end.on('close', () => {
        if (connection.ends.every(({ destroyed }) => destroyed)) this.#forget(connection);
      });
    }
  }

  #reset(connection: Connection): void {
    for (const end of connection.ends) if (!end.destroyed) end.resetAndDestroy();
    this.#forget(connection);
  }

  #forget(connection: Connection): void {
    for (const lane of connection.lanes) lane.close();
    this.#connections.delete(connection);
  }
}
