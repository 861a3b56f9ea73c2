import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs';
import type { RequestListener, Server } from 'node:http';
import { join } from 'node:path';
import { attachFront, noteClientCertificate } from '@transitd/http';
import { clientCertificateTextMax, nodeHttp, StartError } from '@transitd/process';
import type { MainThreadAddress } from './messages.ts';
import { gatewayHeader, senderIn } from './sender.ts';

/** Longest path of a Unix domain socket on Linux, in bytes, without its final zero. */
const socketPathMax = 107;

/**
 * Longest head of a passed request, in bytes, and maximum number of headers of a LIST request: the limits of a gateway plus the headers
 * that it adds.
 */
const headMax = { headBytesMax: 20 * 1024 + clientCertificateTextMax, headersMax: 1_004 } as const;

/**
 * Receives the requests that gateways pass to the main thread, on a Unix domain socket in the data directory, which only the node's user
 * can enter. They are served as if the client had sent them to the main thread itself.
 */
export class PassedRequests {
  readonly address: MainThreadAddress;
  readonly #server: Server;
  readonly #folder: number | undefined;

  /** @param fronts - by the index of the listener */
  constructor(directory: string, fronts: readonly RequestListener[]) {
    const plain = join(directory, 'gateways.sock');
    rmSync(plain, { force: true }); // left by a killed process; the lock on the data directory shows that no other process uses it
    const isShort = Buffer.byteLength(plain) <= socketPathMax;
    this.#folder = isShort ? undefined : openSync(directory, 'r');
    const socketPath = this.#folder === undefined ? plain : `/proc/self/fd/${this.#folder}/gateways.sock`;
    const secret = randomBytes(32).toString('base64url');
    this.address = { socketPath, secret };
    this.#server = nodeHttp().createServer({
      headersTimeout: 0,
      requestTimeout: 0,
      keepAliveTimeout: 0,
      maxHeaderSize: headMax.headBytesMax,
      requireHostHeader: false,
    });
    const serve: RequestListener = (req, res) => {
      const sender = senderIn(req.headers[gatewayHeader], secret);
      const front = sender && fronts[sender.listener];
      if (sender === undefined || front === undefined) {
        req.socket.destroy();
        return;
      }
      delete req.headers[gatewayHeader];
      // Each connection carries one request at a time, so it takes the place of the client's own connection.
      Object.defineProperties(req.socket, {
        remoteAddress: { value: sender.address, configurable: true },
        remotePort: { value: sender.port, configurable: true },
      });
      noteClientCertificate(req.socket, sender.certificate);
      front(req, res);
    };
    attachFront(this.#server, serve, headMax);
    this.#server.timeout = 0; // the gateway monitors the client's connection
  }

  /** @throws StartError */
  listen(): Promise<void> {
    const { socketPath: path } = this.address;
    return new Promise((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) =>
        reject(new StartError(`data_dir: the socket of the gateways cannot be created: ${error.code ?? error.message}`)),
      );
      this.#server.listen({ path, backlog: 4096 }, () => {
        chmodSync(path, 0o600);
        resolve();
      });
    });
  }

  /** Closes every connection. */
  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#folder !== undefined) closeSync(this.#folder);
  }
}
