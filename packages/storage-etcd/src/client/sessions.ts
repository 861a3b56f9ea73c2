import { type ClientHttp2Session, type ClientHttp2Stream, connect, type SecureClientSessionOptions } from 'node:http2';
import type { GrpcTransportOptions } from '@connectrpc/connect-node';

export type SessionManager = NonNullable<GrpcTransportOptions['sessionManager']>;

export interface SessionOptions {
  readonly tls?: Pick<SecureClientSessionOptions, 'ca' | 'cert' | 'key'> | undefined;
  /** Interval of pings while requests are open; etcd closes a connection with pings more often than every 5 seconds. */
  readonly pingIntervalMs?: number;
  /** Longest wait for the answer to a ping. */
  readonly pingTimeoutMs?: number;
}

interface OpenedSession {
  readonly session: ClientHttp2Session;
  /** Those that are open. */
  readonly requests: Set<ClientHttp2Stream>;
}

/** In MB. Above it, Node resets streams whose requests etcd may have carried out; its default of 10 is too low for a few large commits. */
const maxSessionMemory = 512;

/**
 * Keeps one HTTP/2 connection to `endpoint`. Opens it when a request needs it, and another one when it has ended or etcd ends it. Pings
 * find a connection that died without a word: a watch would otherwise wait forever.
 *
 * It replaces the session manager of connect-node 2.2.0, which removes its listeners from connections that can still fail. An error without
 * a listener ends the process.
 */
export class EtcdSessions implements SessionManager {
  readonly authority: string;
  readonly #options: Required<SessionOptions>;
  #opened: OpenedSession | undefined;
  #isClosed = false;

  constructor(endpoint: string, { tls, pingIntervalMs = 5500, pingTimeoutMs = 5000 }: SessionOptions = {}) {
    this.authority = new URL(endpoint).origin;
    this.#options = { tls, pingIntervalMs, pingTimeoutMs };
  }

  async request(...[method, path, headers, options]: Parameters<SessionManager['request']>): Promise<ClientHttp2Stream> {
    if (this.#isClosed) throw new Error('this client of etcd is closed');
    if (this.#opened === undefined || this.#opened.session.closed || this.#opened.session.destroyed) this.#opened = this.#open();
    const { session, requests } = this.#opened;
    const stream = session.request({ ...headers, ':method': method, ':path': path }, options);
    requests.add(stream);
    session.ref();
    stream.once('close', () => {
      requests.delete(stream);
      // Node 24 never closes the socket of a session whose certificate was refused; it must not keep the process alive.
      if (requests.size === 0) session.unref();
    });
    return stream;
  }

  notifyResponseByteRead(): void {}

  /** Ends the connection, and fails the requests that are open on it and all later ones. */
  close(): void {
    this.#isClosed = true;
    this.#opened?.session.destroy();
  }

  #open(): OpenedSession {
    const { tls, pingIntervalMs, pingTimeoutMs } = this.#options;
    const session = connect(this.authority, { ...tls, maxSessionMemory });
    session.on('error', () => undefined); // the requests of the session fail with it
    const requests = new Set<ClientHttp2Stream>();
    let timeout: NodeJS.Timeout | undefined;
    const ping = (): void => {
      if (session.destroyed) clearInterval(interval);
      else if (requests.size > 0 && timeout === undefined && !session.connecting) {
        timeout = setTimeout(() => session.destroy(new Error('etcd did not answer a ping')), pingTimeoutMs);
        session.ping(() => {
          clearTimeout(timeout);
          timeout = undefined;
        });
      }
    };
    const interval = setInterval(ping, pingIntervalMs).unref();
    session.once('close', () => {
      clearInterval(interval);
      clearTimeout(timeout);
    });
    return { session, requests };
  }
}
