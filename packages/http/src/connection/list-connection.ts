import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { arrivalDeadline } from '../limits/arrival-deadline.ts';
import { clientCertificateOf, noteClientCertificate } from './client-certificates.ts';
import { refuse } from './parse-refusals.ts';

const verb = 'LIST ';
/** The verb that the second parser gets. Like LIST, GET has no body unless a length is announced. */
const substituteVerb = Buffer.from('GET ', 'latin1');

/** Returns whether these bytes are `LIST `, begin with it, or may still become it. */
export const mayBecomeVerb = (head: Buffer): boolean => verb.startsWith(head.toString('latin1', 0, verb.length));

/** Times in milliseconds from the first packet of a LIST request. */
interface Deadlines {
  /** To the end of its head. */
  readonly headMs: number;
  /** To the end of its response. */
  readonly exchangeMs: number;
}

/**
 * The connection as the second parser sees it, from the LIST request on: the substitute verb, then the bytes of the socket. This stream and
 * the socket end together.
 */
export class ListConnection extends Duplex {
  readonly #lists: Server;
  readonly #socket: Socket;
  readonly #endHeadDeadline: () => void;
  readonly #exchangeDeadline: NodeJS.Timeout;
  /** Bytes of the verb so far; undefined once it is complete and the parser runs. */
  #verb: Buffer | undefined = Buffer.alloc(0);
  #headComplete = false;
  #released = false;

  constructor(lists: Server, socket: Socket, { headMs, exchangeMs }: Deadlines) {
    super({ decodeStrings: false });
    this.#lists = lists;
    this.#socket = socket;
    noteClientCertificate(this, clientCertificateOf(socket));
    this.#endHeadDeadline = arrivalDeadline(headMs, () => this.#fail('ERR_HTTP_REQUEST_TIMEOUT'));
    this.#exchangeDeadline = setTimeout(() => this.destroy(), exchangeMs);
    // The first parser has failed but still listens, and its keep-alive timeout may be running.
    socket.setTimeout(0);
    socket.on('data', (chunk: Buffer) => this.arrive(chunk));
    for (const listener of socket.listeners('data').slice(0, -1)) socket.off('data', listener as () => void);
    socket.removeAllListeners('end');
    // A caller may half-close after the request. The second parser then decides whether the request was complete.
    socket.on('end', () => setImmediate(() => this.#headComplete || this.#fail('HPE_INVALID_EOF_STATE')));
    socket.on('close', () => this.destroy());
    socket.resume();
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  get remotePort(): number | undefined {
    return this.#socket.remotePort;
  }

  get localAddress(): string | undefined {
    return this.#socket.localAddress;
  }

  get localPort(): number | undefined {
    return this.#socket.localPort;
  }

  get encrypted(): boolean {
    return 'encrypted' in this.#socket && this.#socket.encrypted === true;
  }

  arrive(chunk: Buffer): void {
    if (this.#headComplete || this.destroyed) return; // discards bytes after the head: unread, they would make the close a reset
    if (this.#verb === undefined) {
      if (!this.push(chunk)) this.#socket.pause();
      return;
    }
    const head = Buffer.concat([this.#verb, chunk]);
    if (!mayBecomeVerb(head)) {
      this.#fail('HPE_INVALID_METHOD');
    } else if (head.length < verb.length) {
      this.#verb = head;
    } else {
      this.#verb = undefined;
      this.push(Buffer.concat([substituteVerb, head.subarray(verb.length)]));
      this.#lists.emit('connection', this);
    }
  }

  headArrived(): void {
    this.#headComplete = true;
    this.#endHeadDeadline();
    this.#socket.resume();
  }

  /** Releases the socket. */
  release(): Socket {
    this.#socket.removeAllListeners('data').removeAllListeners('end').resume();
    this.#released = true;
    this.destroy();
    return this.#socket;
  }

  #fail(code: string): void {
    if (!this.destroyed) refuse(this.release(), Object.assign(new Error(code), { code }));
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, encoding, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => {
      done();
      this.destroy();
    });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#endHeadDeadline();
    clearTimeout(this.#exchangeDeadline);
    if (!this.#released) this.#socket.destroy();
    done(error);
  }
}
