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
  readonly #requests = new Set<ClientHttp2Stream>();
  #session: ClientHttp2Session | undefined;

  constructor(endpoint: string, { tls, pingIntervalMs = 5500, pingTimeoutMs = 5000 }: SessionOptions = {}) {
    this.authority = new URL(endpoint).origin;
    this.#options = { tls, pingIntervalMs, pingTimeoutMs };
  }

  async request(...[method, path, headers, options]: Parameters<SessionManager['request']>): Promise<ClientHttp2Stream> {
    let session = this.#session;
    if (session === undefined || session.closed || session.destroyed) {
      session = this.#open();
      this.#session = session;
    }
    const stream = session.request({ ...headers, ':method': method, ':path': path }, options);
    this.#requests.add(stream);
    stream.once('close', () => this.#requests.delete(stream));
    return stream;
  }

  notifyResponseByteRead(): void {}

  /** Ends the connection, and fails the requests that are open on it. */
  close(): void {
    this.#session?.destroy();
  }

  #open(): ClientHttp2Session {
    const { tls, pingIntervalMs, pingTimeoutMs } = this.#options;
    const session = connect(this.authority, { ...tls, maxSessionMemory });
    session.on('error', () => undefined); // the requests of the session fail with it
    let timeout: NodeJS.Timeout | undefined;
    const ping = (): void => {
      if (this.#requests.size === 0 || timeout !== undefined || session.connecting || session.destroyed) return;
      timeout = setTimeout(() => session.destroy(new Error('etcd did not answer a ping')), pingTimeoutMs);
      session.ping(() => {
        clearTimeout(timeout);
        timeout = undefined;
      });
    };
    const interval = setInterval(ping, pingIntervalMs);
    session.once('close', () => {
      clearInterval(interval);
      clearTimeout(timeout);
    });
    return session;
  }
}
