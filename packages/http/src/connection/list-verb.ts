import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { errorsBody } from '../reply/envelope.ts';
import { type Reply, sendReply, strictTransportSecurity } from '../reply/reply.ts';
import { expectationFailed, RequestError, requestErrorReply } from '../reply/request-error.ts';
import { OpenResponses } from './open-responses.ts';

// LIST is a verb of its own on this interface, and Node's parser does not know it. It reports such a request as a parse error
// (`clientError`, HPE_INVALID_METHOD) and hands over the packet. From there the same bytes go through a second parser of the same
// kind, with a verb that it knows in place of LIST: so a LIST request's head is held to the same limits and the same strictness as
// any other, and its listener sees an ordinary request whose method is LIST. The connection closes after its answer.
//
// The parser gives up at the S of LIST. A client whose first packet ends before that has its first one or two letters swallowed:
// they were the beginning of some method, and `bytesParsed` tells whether the S was the first or the second letter of the packet
// now at hand. That is all that can be known without reading every packet of every connection in JavaScript, which costs 15 % of
// a bare request. So "GE", cut, and "ST /v1/…" is a LIST too; who sends that could have sent LIST.

export interface ListVerbOptions {
  /** Milliseconds from the first packet of a LIST request to the end of its head. */
  readonly headMs?: number;
  /** Milliseconds from that packet to the end of the answer. */
  readonly exchangeMs?: number;
  /** Request line and headers together, in bytes. */
  readonly headBytesMax?: number;
  readonly headersMax?: number;
  /** Where the responses of `server` are kept; it is made to follow `server` here. */
  readonly open?: OpenResponses;
}

/** What node:http adds to its parse errors. */
interface ParseError extends Error {
  readonly code?: string;
  readonly bytesParsed?: number;
  readonly rawPacket?: Buffer;
}

const verb = 'LIST ';
/** The same as LIST for the parser in every respect that matters here: no body unless a length is announced. */
const standIn = Buffer.from('GET ', 'latin1');

/**
 * Lets `handle` serve LIST requests of `server` (HTTP/1.x, plain or TLS), and answers everything else that the parser refuses, or
 * gives away as it does CONNECT: 400, 405, 408, 413 or 431 with an `errors` body, then close. What is malformed behind a request that is still open gets its refusal
 * after that request's own answer, which tells whether it took effect. Called once the server's other listeners are in place; takes
 * over its `clientError` and `connect`.
 */
export function installListVerb(server: Server, handle: RequestListener, options: ListVerbOptions = {}): void {
  const { headMs = 10_000, exchangeMs = 90_000, headBytesMax = 16_384, headersMax = 100, open = new OpenResponses() } = options;
  const settled = new WeakSet<Duplex>();
  const answered = new WeakSet<Duplex>();
  open.watch(server);

  const lists = createServer({ maxHeaderSize: headBytesMax, requireHostHeader: false }, (req, res) => {
    res.shouldKeepAlive = false;
    answered.add(req.socket);
    if (req.socket instanceof ListConnection) req.socket.headArrived();
    const refusal = refusalOf(req, headersMax);
    if (refusal !== undefined) {
      sendReply(res, refusal, { head: false });
      res.end(); // at once: the body that may be announced is read away below the parser
      return;
    }
    req.method = 'LIST';
    handle(req, res);
  });
  lists.maxRequestsPerSocket = 1; // of what comes in the same packet nothing is served
  lists.maxHeadersCount = 0; // none is dropped unseen: refusalOf counts them
  for (const event of ['checkContinue', 'checkExpectation']) lists.on(event, (req, res) => lists.emit('request', req, res));
  open.watch(lists);
  lists.on('clientError', (error: ParseError, connection: Duplex) => {
    // One request, one answer: what stands behind a request that has its answer ends with the connection.
    if (connection instanceof ListConnection && !answered.has(connection)) refuse(connection.release(), error);
  });

  server.on('clientError', (error: ParseError, duplex: Duplex) => {
    if (settled.has(duplex)) return; // every later packet is an error again, to a parser that has given up
    settled.add(duplex);
    const socket = duplex as Socket;
    const newest = unfinished(open.newest(socket));
    const head = newest === undefined ? listHead(error) : undefined;
    if (head !== undefined) new ListConnection(lists, socket, { headMs, exchangeMs }).arrive(head);
    else if (newest === undefined) refuse(socket, error);
    else if (newest.req.complete) refuseAfter(newest, socket, error, exchangeMs);
    else if (newest.socket === null || newest.headersSent)
      socket.destroy(); // a part of some answer has left: no other may follow
    else refuse(socket, error);
  });

  server.on('connect', ({ socket }) => {
    const newest = unfinished(open.newest(socket));
    const error = Object.assign(new Error('CONNECT'), { code: 'CONNECT' });
    // Node has detached the socket: its errors, its timeout and the progress of the answers on it are left to us.
    socket.on('error', () => socket.destroy()).on('timeout', () => socket.destroy());
    socket.on('end', () => socket.end());
    socket.on('drain', () => open.oldest(socket)?.emit('drain'));
    socket.setTimeout(exchangeMs).resume();
    if (newest === undefined) refuse(socket, error);
    else refuseAfter(newest, socket, error, exchangeMs);
  });
}

const unfinished = (res: ServerResponse | undefined): ServerResponse | undefined =>
  res === undefined || res.writableFinished || res.destroyed ? undefined : res;

/** The request's first bytes when they are, or may still become, `LIST `; letters that went with an earlier packet are put back. */
function listHead({ code, bytesParsed, rawPacket }: ParseError): Buffer | undefined {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return undefined;
  const text = rawPacket.toString('latin1', 0, 64);
  const swallowed = text.startsWith('S') && bytesParsed === 0 ? 'LI' : text.startsWith('IS') && bytesParsed === 1 ? 'L' : '';
  // Empty lines before a request are allowed (RFC 9112 §2.2), and the parser has skipped them.
  const blank = /^(?:\r?\n)*/.exec(text)?.[0].length ?? 0;
  const head = Buffer.concat([Buffer.from(swallowed, 'latin1'), rawPacket.subarray(blank)]);
  return mayBecomeVerb(head) ? head : undefined;
}

const mayBecomeVerb = (head: Buffer): boolean => verb.startsWith(head.toString('latin1', 0, verb.length));

/** A LIST request is nothing but its head: what a proxy in front could understand in another way is refused. */
function refusalOf({ headers, rawHeaders, httpVersion }: IncomingMessage, headersMax: number): Reply | undefined {
  const refused = (text: string) => requestErrorReply(new RequestError('invalid_request', text));
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refused('a LIST request is of HTTP/1.1');
  const hosts = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return refused('a LIST request has one Host');
  if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect)) return requestErrorReply(expectationFailed());
  // Clients that announce an empty body (`Content-Length: 0`) send none.
  if (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0') {
    return refused('a LIST request has no body');
  }
  if (rawHeaders.length > 2 * headersMax)
    return requestErrorReply(new RequestError('head_too_large', 'the request has too many headers'));
  return undefined;
}

const refusals: Readonly<Record<string, readonly [statusLine: string, text: string]>> = {
  CONNECT: ['405 Method Not Allowed', 'unsupported operation'],
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the request head is too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Content Too Large', 'http: request body too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not arrive in time'],
};

/** What could not be parsed has no response object, so its answer is written by hand. */
function refuse(socket: Socket, { code, rawPacket }: ParseError): void {
  if (!socket.writable || code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const reason = code === 'HPE_INVALID_METHOD' && wellFormed(rawPacket) ? 'CONNECT' : (code ?? '');
  const [statusLine, text] = refusals[reason] ?? ['400 Bad Request', 'malformed HTTP request'];
  const body = errorsBody([text]);
  const head = `HTTP/1.1 ${statusLine}\r\nCache-Control: no-store\r\nStrict-Transport-Security: ${strictTransportSecurity}\r\n`;
  const close = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
  socket.end(head + close + body, 'latin1', () => socket.destroy());
}

/** A request line that is right but for a method that nobody has (RFC 9110 §9.1: a token). */
const wellFormed = (packet: Buffer | undefined): boolean =>
  packet !== undefined && /^(?:\r?\n)*[!#$%&'*+.^_`|~\w-]+ \S+ HTTP\/1\.[01]\r\n/.test(packet.toString('latin1', 0, 16_384));

/** The open request was well-formed and may have taken effect, so its own answer goes first. */
function refuseAfter(open: ServerResponse, socket: Socket, error: ParseError, deadlineMs: number): void {
  const deadline = setTimeout(() => socket.destroy(), deadlineMs);
  open.once('close', () => {
    clearTimeout(deadline);
    // Whatever it was, it stood where nothing may stand: the packet does not matter any more.
    refuse(socket, Object.assign(new Error(error.message), { code: error.code ?? '' }));
  });
}

interface Deadlines {
  readonly headMs: number;
  readonly exchangeMs: number;
}

/**
 * The rest of a socket whose next request is LIST, as the second parser sees it: the stand-in for the verb, then what came and
 * comes. The two end together.
 */
class ListConnection extends Duplex {
  readonly #lists: Server;
  readonly #socket: Socket;
  readonly #headDeadline: NodeJS.Timeout;
  readonly #exchangeDeadline: NodeJS.Timeout;
  /** Of the verb so far; undefined once it is complete and the parser at work. */
  #verb: Buffer | undefined = Buffer.alloc(0);
  #headComplete = false;
  #released = false;

  constructor(lists: Server, socket: Socket, { headMs, exchangeMs }: Deadlines) {
    super({ decodeStrings: false });
    this.#lists = lists;
    this.#socket = socket;
    this.#headDeadline = setTimeout(() => this.#fail('ERR_HTTP_REQUEST_TIMEOUT'), headMs);
    this.#exchangeDeadline = setTimeout(() => this.destroy(), exchangeMs);
    // The first parser is done for, but it still listens; its idle timeout of a kept-alive connection may be running too.
    socket.setTimeout(0);
    socket.on('data', (chunk: Buffer) => this.arrive(chunk));
    for (const listener of socket.listeners('data').slice(0, -1)) socket.off('data', listener as () => void);
    socket.removeAllListeners('end');
    // A caller may end its side after the request; whether the request was complete is known when the parser has had its turn.
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
    if (this.#headComplete || this.destroyed) return; // nothing may follow a LIST request: read away, so that closing does not reset
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
      this.push(Buffer.concat([standIn, head.subarray(verb.length)]));
      this.#lists.emit('connection', this);
    }
  }

  headArrived(): void {
    this.#headComplete = true;
    clearTimeout(this.#headDeadline);
    this.#socket.resume();
  }

  /** Lets go of the socket. */
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
    clearTimeout(this.#headDeadline);
    clearTimeout(this.#exchangeDeadline);
    if (!this.#released) this.#socket.destroy();
    done(error);
  }
}
