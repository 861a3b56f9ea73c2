import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { nodeHttp } from '@transitd/process';
import type { Reply } from '../reply/reply.ts';
import { expectationFailed, RequestError, requestErrorReply } from '../reply/request-error.ts';
import { sendReply } from '../reply/send.ts';
import { ListConnection, mayBecomeVerb } from './list-connection.ts';
import { OpenResponses } from './open-responses.ts';
import { type ParseError, refuse, refuseAfter } from './parse-refusals.ts';

// Vault's API has the verb LIST, which Node's parser does not know. The parser reports such a request as a parse error (`clientError`,
// HPE_INVALID_METHOD) with the packet. The same bytes then go through a second Node parser, with GET in place of LIST. So the head of a
// LIST request is subject to the same limits and strict parsing as any other, and the listener gets an ordinary request whose method is
// LIST. The connection closes after the response.
//
// The parser fails at the S of LIST. If the first packet ends before the S, its one or two letters are lost. They were the start of some
// method, and `bytesParsed` shows whether the S was the first or the second letter of the current packet. To know the lost letters, every
// packet of every connection would have to be read in JavaScript, which costs 15 % of the time of a minimal request. So "GE" followed by
// "ST /v1/…" is treated as LIST too. This is harmless: the sender could have sent LIST.

export interface ListVerbOptions {
  /** Milliseconds from the first packet of a LIST request to the end of its head. */
  readonly headMs?: number;
  /** Milliseconds from the first packet to the end of the response. */
  readonly exchangeMs?: number;
  /** Request line and headers together, in bytes. */
  readonly headBytesMax?: number;
  /** Open responses of `server`; `installListVerb` starts to watch `server` for them. */
  readonly open?: OpenResponses;
}

/**
 * Serves LIST requests of `server` (HTTP/1.x, plain or TLS) with `handle`. Also answers every other request that the parser refuses, and
 * CONNECT, which Node does not handle: 400, 405, 408, 413 or 431 with an `errors` body, then closes the connection. If a malformed request
 * arrives while an earlier one is still open, it is refused after the response of the earlier request, whose caller must learn whether it
 * took effect. Call this function after the other listeners of the server are installed: it replaces the listeners of `clientError` and
 * `connect`.
 */
export function installListVerb(server: Server, handle: RequestListener, options: ListVerbOptions = {}): void {
  const { headMs = 10_000, exchangeMs = 90_000, headBytesMax = 16_384, open = new OpenResponses() } = options;
  const failed = new WeakSet<Duplex>();
  const answered = new WeakSet<Duplex>();
  open.watch(server);

  const lists = nodeHttp().createServer({ maxHeaderSize: headBytesMax, requireHostHeader: false }, (req, res) => {
    res.shouldKeepAlive = false;
    answered.add(req.socket);
    if (req.socket instanceof ListConnection) req.socket.headArrived();
    const refusal = refusalOf(req);
    if (refusal !== undefined) {
      sendReply(res, refusal, { head: false });
      res.end(); // respond at once: an announced body is drained below the parser
      return;
    }
    req.method = 'LIST';
    handle(req, res);
  });
  lists.maxRequestsPerSocket = 1; // further requests in the same packet are not served
  lists.maxHeadersCount = 0; // unlimited here: attachFront counts the headers
  for (const event of ['checkContinue', 'checkExpectation']) lists.on(event, (req, res) => lists.emit('request', req, res));
  open.watch(lists);
  lists.on('clientError', (error: ParseError, connection: Duplex) => {
    // One request, one response: bytes after an answered request are discarded with the connection.
    if (connection instanceof ListConnection && !answered.has(connection)) refuse(connection.release(), error);
  });

  server.on('clientError', (error: ParseError, duplex: Duplex) => {
    if (failed.has(duplex)) return; // a failed parser reports every later packet as an error too
    failed.add(duplex);
    const socket = duplex as Socket;
    const newest = unfinished(open.newest(socket));
    const head = newest === undefined ? listHead(error) : undefined;
    if (head !== undefined) new ListConnection(lists, socket, { headMs, exchangeMs }).arrive(head);
    else if (newest === undefined) refuse(socket, error);
    else if (newest.req.complete) refuseAfter(newest, socket, error, exchangeMs);
    else if (newest.socket === null || newest.headersSent)
      socket.destroy(); // part of a response was already sent: no other response may follow
    else refuse(socket, error);
  });

  server.on('connect', ({ socket }) => {
    const newest = unfinished(open.newest(socket));
    const error = Object.assign(new Error('CONNECT'), { code: 'CONNECT' });
    // Node has detached the socket, so we handle its errors, its timeout and the progress of its responses.
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

/** Returns the first bytes of a request that are, or may become, `LIST `, with the letters lost with an earlier packet restored. */
function listHead({ code, bytesParsed, rawPacket }: ParseError): Buffer | undefined {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return undefined;
  const text = rawPacket.toString('latin1', 0, 64);
  const swallowed = text.startsWith('S') && bytesParsed === 0 ? 'LI' : text.startsWith('IS') && bytesParsed === 1 ? 'L' : '';
  // Empty lines before a request are allowed (RFC 9112 §2.2), and the parser has skipped them.
  const blank = /^(?:\r?\n)*/.exec(text)?.[0].length ?? 0;
  const head = Buffer.concat([Buffer.from(swallowed, 'latin1'), rawPacket.subarray(blank)]);
  return mayBecomeVerb(head) ? head : undefined;
}

/** Returns the refusal of a LIST request that has a body or that a proxy could parse differently; undefined for a valid one. */
function refusalOf({ headers, rawHeaders, httpVersion }: IncomingMessage): Reply | undefined {
  const refused = (text: string) => requestErrorReply(new RequestError('invalid_request', text));
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refused('unsupported HTTP version: use HTTP/1.1');
  const hosts = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return refused('the request must have exactly one Host header');
  if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect)) return requestErrorReply(expectationFailed());
  // Clients that announce an empty body (`Content-Length: 0`) send none.
  if (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0') {
    return refused('a LIST request must not have a body');
  }
  return undefined;
}
