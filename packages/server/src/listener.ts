import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { addressText, type ListenerConfig, tlsContext } from '@transitd/configuration';
import { attachFront, type Connections, endpointOf } from '@transitd/http';
import { StartError } from '@transitd/process';

/** How long requests in flight may take to end after the process was asked to stop. */
const defaultDrainMs = 5000;

/** The part of a listener's configuration that its server needs. */
export type ListenerServerConfig = Pick<ListenerConfig, 'headers_timeout'> & { readonly tls?: ListenerConfig['tls'] };

/** The server of the API's clients, which hands all their requests to `front`. @throws StartError */
export function createListener({ tls, headers_timeout }: ListenerServerConfig, front: RequestListener): Server {
  const options = {
    headersTimeout: headers_timeout,
    connectionsCheckingInterval: 1000, // how often the timeout above is looked at
    requestTimeout: 0,
    keepAliveTimeout: 5 * 60_000,
    maxHeaderSize: 16 * 1024,
    requireHostHeader: false, // the front looks at it, and answers as to any mistake
    noDelay: true,
  };
  const asksForCertificate = tls?.client_ca_file !== undefined;
  const server: Server =
    tls === undefined
      ? createServer(options)
      : createTlsServer({
          ...options,
          ...tlsContext(tls),
          handshakeTimeout: headers_timeout,
          requestCert: asksForCertificate,
          rejectUnauthorized: asksForCertificate,
        });
  attachFront(server, front);
  return server;
}

/** One address that is listened on, with the connections and requests that hang on it. */
export class Listener {
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  readonly #inFlight = new Set<ServerResponse>();
  readonly #drainMs: number;
  #draining = false;

  /**
   * @param create - makes the server, which hands its requests to the listener given, of whatever event they come from
   * @param connections - where they are counted beside those of other listeners
   */
  constructor(
    handle: RequestListener,
    create: (counted: RequestListener) => Server,
    { connections, drainMs = defaultDrainMs }: { readonly connections?: Connections | undefined; readonly drainMs?: number } = {},
  ) {
    this.#drainMs = drainMs;
    this.#server = create((req, res) => {
      this.#count(res);
      handle(req, res);
    });
    const atWork = () => this.#atWork();
    this.#server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      connections?.add(socket, atWork);
      socket.once('close', () => this.#connections.delete(socket));
    });
  }

  /** Resolves with the address under which it answers. @throws StartError */
  listen({ host, port }: ListenerConfig['address']): Promise<string> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException): void => {
        const what = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be used: ${error.code ?? error.message}`;
        reject(new StartError(`listeners: ${host}:${port} ${what}`));
      };
      server.once('error', onError);
      server.listen(port, host, () => {
        server.off('error', onError);
        const bound = server.address();
        const boundPort = typeof bound === 'object' && bound !== null ? bound.port : port;
        const scheme = server instanceof TlsServer ? 'https' : 'http';
        resolve(`${scheme}://${addressText({ host, port: boundPort })}`);
      });
    });
  }

  /** From now on handshakes use this context, and nothing of the one before. */
  replaceContext(context: SecureContextOptions): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(context);
  }

  /**
   * Takes no new connections, lets requests in flight end, and cuts everything else: what waits for no answer, be it silent or in
   * the middle of a head, delays nothing.
   */
  drain(): Promise<void> {
    this.#draining = true;
    for (const res of this.#inFlight) res.shouldKeepAlive = false;
    return new Promise((resolve) => {
      const deadline = setTimeout(() => this.#cut(), this.#drainMs);
      this.#server.close(() => {
        clearTimeout(deadline);
        resolve();
      });
      this.#cutWhenAllAnswered();
    });
  }

  /** Far ends whose whole request waits for its answer. */
  #atWork(): ReadonlySet<string> {
    return new Set([...this.#inFlight].filter(({ req }) => req.complete).map(({ req }) => endpointOf(req.socket)));
  }

  #count(res: ServerResponse): void {
    this.#inFlight.add(res);
    if (this.#draining) res.shouldKeepAlive = false; // a caller with more to ask would keep its connection, and us, busy
    res.once('close', () => {
      this.#inFlight.delete(res);
      if (this.#draining) setImmediate(() => this.#cutWhenAllAnswered()); // the connection of the last answer ends by itself, in order
    });
  }

  #cutWhenAllAnswered(): void {
    if (this.#inFlight.size === 0) this.#cut();
  }

  /** Node closes idle connections only, and those that have parsed a request: these are all there are, TLS handshakes too. */
  #cut(): void {
    for (const socket of this.#connections) socket.destroy();
  }
}
