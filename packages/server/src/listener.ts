import type { RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import { addressText, type ListenerConfig, tlsContext } from '@transitd/configuration';
import { attachFront, type Connections, endpointOf } from '@transitd/http';
import { nodeHttp, StartError } from '@transitd/process';
import { noteClientCertificates, useVerifiers } from './client-certificates.ts';
import { unusable } from './free-address.ts';

/** How long requests in flight may take to finish after a stop signal, in milliseconds. */
const defaultDrainMs = 5000;

/** The part of a listener's configuration that its server needs. */
export type ListenerServerConfig = Pick<ListenerConfig, 'headers_timeout'> & {
  readonly tls?: ListenerConfig['tls'];
  /** The content of the TLS files, if they were read already. */
  readonly context?: SecureContextOptions | undefined;
};

/** Creates the HTTP server of a listener, which passes all requests to `front`. @throws StartError */
export function createListener({ tls, context, headers_timeout }: ListenerServerConfig, front: RequestListener): Server {
  const options = {
    headersTimeout: headers_timeout,
    connectionsCheckingInterval: 1000, // how often headersTimeout is checked
    requestTimeout: 0,
    keepAliveTimeout: 5 * 60_000,
    maxHeaderSize: 16 * 1024,
    requireHostHeader: false, // the front checks the Host header, and answers with the API's error format
    noDelay: true,
  };
  const server: Server =
    tls === undefined ? nodeHttp().createServer(options) : tlsServer(tls, context ?? tlsContext(tls), options, headers_timeout);
  attachFront(server, front);
  return server;
}

function tlsServer(
  { client_ca_file, client_auth }: NonNullable<ListenerConfig['tls']>,
  context: SecureContextOptions,
  options: ServerOptions,
  handshakeTimeout: number,
): TlsServer {
  const requestCert = client_ca_file !== undefined;
  const rejectUnauthorized = requestCert && client_auth !== 'optional';
  const server = createTlsServer({ ...options, ...context, handshakeTimeout, requestCert, rejectUnauthorized });
  useVerifiers(server, context);
  if (requestCert) noteClientCertificates(server);
  return server;
}

/**
 * Checks that no socket listens on the address. Listeners that share an address with threads of their own process would share it with
 * another process of the same user too.
 * @throws StartError
 */
export async function requireFree(address: ListenerConfig['address']): Promise<void> {
  const error = await unusable(address).catch((unknownHost: NodeJS.ErrnoException) => unknownHost);
  if (error !== undefined) throw listenError(address, error);
}

function listenError(address: ListenerConfig['address'], error: NodeJS.ErrnoException): StartError {
  const what = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be used: ${error.code ?? error.message}`;
  return new StartError(`listeners: ${addressText(address)} ${what}`);
}

/** One listening address with its connections and requests in flight. */
export class Listener {
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  readonly #inFlight = new Set<ServerResponse>();
  readonly #drainMs: number;
  #draining = false;

  /**
   * @param create - creates the server, which passes the requests of all its events to the given handler
   * @param connections - counts the connections of all listeners
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
    const busyEndpoints = () => this.#busyEndpoints();
    this.#server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      connections?.add(socket, busyEndpoints);
      socket.once('close', () => this.#connections.delete(socket));
    });
  }

  /**
   * Starts to listen and resolves with the URL.
   * @param shared - other threads of this process listen on the same address, and the kernel spreads the connections. The caller has
   * checked that no other process uses the address ({@link requireFree}).
   * @throws StartError
   */
  listen({ host, port }: ListenerConfig['address'], { shared = false } = {}): Promise<string> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException): void => reject(listenError({ host, port }, error));
      server.once('error', onError);
      server.listen({ port, host, reusePort: shared }, () => {
        server.off('error', onError);
        const bound = server.address();
        const boundPort = typeof bound === 'object' && bound !== null ? bound.port : port;
        const scheme = server instanceof TlsServer ? 'https' : 'http';
        resolve(`${scheme}://${addressText({ host, port: boundPort })}`);
      });
    });
  }

  /**
   * Replaces the TLS context for new handshakes. If other authorities or revocation lists verify them, earlier handshakes and connections
   * end: otherwise a client that was removed or revoked could log in for as long as it keeps its connection.
   */
  replaceContext(context: SecureContextOptions): void {
    if (!(this.#server instanceof TlsServer)) return;
    this.#server.setSecureContext(context);
    if (useVerifiers(this.#server, context)) this.#endConnections();
  }

  /**
   * Stops accepting connections, waits for requests in flight, and closes all other connections, idle or with an incomplete header,
   * without delay.
   */
  drain(): Promise<void> {
    this.#draining = true;
    for (const res of this.#inFlight) res.shouldKeepAlive = false;
    return new Promise((resolve) => {
      const deadline = setTimeout(() => this.#closeAll(), this.#drainMs);
      this.#server.close(() => {
        clearTimeout(deadline);
        resolve();
      });
      this.#closeWhenIdle();
    });
  }

  /** Returns the endpoints of clients whose complete request is in flight. */
  #busyEndpoints(): ReadonlySet<string> {
    return new Set([...this.#inFlight].filter(({ req }) => req.complete).map(({ req }) => endpointOf(req.socket)));
  }

  /** Ends connections with requests in flight after their answers, and all others at once. */
  #endConnections(): void {
    const busy = new Set<string>();
    for (const res of this.#inFlight) {
      const { socket } = res.req;
      busy.add(endpointOf(socket));
      res.shouldKeepAlive = false;
      if (res.headersSent) res.once('close', () => socket.destroy()); // it has told the client that the connection stays open
    }
    for (const socket of this.#connections) if (!busy.has(endpointOf(socket))) socket.destroy();
  }

  #count(res: ServerResponse): void {
    this.#inFlight.add(res);
    if (this.#draining) res.shouldKeepAlive = false; // otherwise a client with more requests would delay the drain
    res.on('close', () => {
      this.#inFlight.delete(res);
      if (this.#draining) setImmediate(() => this.#closeWhenIdle()); // the connection of the last response closes by itself
    });
  }

  #closeWhenIdle(): void {
    if (this.#inFlight.size === 0) this.#closeAll();
  }

  /** Closes every connection, TLS handshakes included; Node's own methods close only connections that have parsed a request. */
  #closeAll(): void {
    for (const socket of this.#connections) socket.destroy();
  }
}
