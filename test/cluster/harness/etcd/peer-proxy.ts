import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The mode of the link from one member to another. `hold` keeps all bytes until the link opens; `cut` ends and refuses requests. */
export type PeerLinkMode = 'open' | 'hold' | 'cut';

interface Exchange {
  readonly to: string;
  readonly ask: IncomingMessage;
  readonly answer: ServerResponse;
  /** The streams that carry bytes of this exchange, each with its destination. */
  readonly flows: (readonly [NodeJS.ReadableStream, NodeJS.WritableStream])[];
}

/**
 * The way of one member of an etcd cluster to the others: etcd calls its peers through the HTTP proxy that its environment names. So the
 * link from each member to each other has its own mode, although all run on one machine.
 */
export class PeerProxy {
  readonly #server: Server;
  readonly #ports: ReadonlyMap<string, number>;
  readonly #modes = new Map<string, PeerLinkMode>();
  readonly #exchanges = new Set<Exchange>();

  /** @param ports - the port on loopback at which the member with this host, as it advertises itself, listens */
  private constructor(ports: ReadonlyMap<string, number>) {
    this.#ports = ports;
    this.#server = createServer((ask, answer) => this.#take(ask, answer));
    this.#server.timeout = 0;
    this.#server.requestTimeout = 0;
  }

  static async listen(ports: ReadonlyMap<string, number>): Promise<PeerProxy> {
    const proxy = new PeerProxy(ports);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject).listen({ host: '127.0.0.1', port: 0 }, resolve);
    });
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Sets the mode of the link to this member, also for exchanges under way. */
  setMode(to: string, mode: PeerLinkMode): void {
    this.#modes.set(to, mode);
    for (const exchange of [...this.#exchanges])
      if (exchange.to === to) {
        if (mode === 'cut') this.#end(exchange);
        else if (mode === 'hold') for (const [from] of exchange.flows) from.unpipe();
        else this.#open(exchange);
      }
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const exchange of [...this.#exchanges]) this.#end(exchange);
    this.#server.closeAllConnections();
    await closed;
  }

  #take(ask: IncomingMessage, answer: ServerResponse): void {
    const to = URL.canParse(ask.url ?? '') ? new URL(ask.url ?? '').hostname : '';
    const exchange: Exchange = { to, ask, answer, flows: [] };
    this.#exchanges.add(exchange);
    const end = (): void => this.#end(exchange);
    ask.on('error', end);
    answer.on('error', end).on('close', end);
    const mode = this.#modes.get(to) ?? 'open';
    if (mode === 'cut') end();
    else if (mode === 'open') this.#open(exchange);
  }

  /** Sends the request on if that has not been done yet, and lets the bytes flow. */
  #open(exchange: Exchange): void {
    const { to, ask, answer, flows } = exchange;
    if (flows.length > 0) {
      for (const [from, into] of flows) from.pipe(into);
      return;
    }
    const { pathname, search } = new URL(ask.url ?? '');
    const onward = request({
      ...{ host: '127.0.0.1', port: this.#ports.get(to), agent: false },
      ...{ method: ask.method, path: `${pathname}${search}`, headers: ask.headers },
    });
    onward.on('error', () => this.#end(exchange));
    answer.on('close', () => onward.destroy());
    onward.on('response', (response) => {
      response.on('error', () => this.#end(exchange));
      answer.writeHead(response.statusCode ?? 502, response.headers);
      answer.flushHeaders();
      flows.push([response, answer]);
      if ((this.#modes.get(to) ?? 'open') === 'open') response.pipe(answer);
    });
    flows.push([ask, onward]);
    ask.pipe(onward);
  }

  #end(exchange: Exchange): void {
    this.#exchanges.delete(exchange);
    exchange.ask.socket.destroy();
  }
}
