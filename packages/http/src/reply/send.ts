import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { callerGroup } from '@transitd/process';
import { announcesBody } from './announced-body.ts';
import { endAfterDrain } from './drain.ts';
import { bodyBytesOf, encode } from './encode.ts';
import { discardReply, type EncodedBody, type Reply } from './reply.ts';
import { smallResponseBytes, unreadResponses } from './unread-responses.ts';

/** Value of `Strict-Transport-Security`. Sent with every response, also over plain HTTP, as in the peers. */
export const strictTransportSecurity = 'max-age=31536000; includeSubDomains';

/** Returns whether responses with this status have no content (RFC 9110 §15.3.5, §15.3.6, §15.4.5). */
const contentless = (status: number): boolean => status === 204 || status === 205 || status === 304;

/** Longer content is written in pieces, a text in those of `pieceChars`, each after the caller has read the previous piece. */
const atOnceBytesMax = 4 * 1024 * 1024;
const pieceChars = 256 * 1024;
/** Node joins the headers and a text to one string, which copies a long one once more. Longer texts are sent as bytes. */
const joinedBytesMax = 64 * 1024;

export interface SendOptions {
  /** The request was HEAD: sends the status and headers of the GET, without content and without `Content-Length`. */
  readonly head: boolean;
  /** Returns the address to which a long response counts until it is read; that of the connection if absent. */
  readonly address?: () => string;
}

/**
 * Writes `reply` and ends the response. A caller that has disconnected is not an error. If the request body was not read to its end, the
 * connection closes, because the rest of the body would be read as the next request.
 */
export function sendReply(res: ServerResponse, reply: Reply, { head, address }: SendOptions): void {
  if (res.destroyed) {
    discardReply(reply);
    return;
  }
  const { status } = reply;
  const { req } = res;
  const unread = !isRead(req) && announcesBody(req);
  const { body: encoded, stream } = encode(reply);
  const body = contentless(status) ? undefined : encoded;
  const headers = ['Cache-Control', 'no-store', 'Strict-Transport-Security', strictTransportSecurity];
  let encoding: BufferEncoding = 'utf8';
  const bytes = body === undefined ? 0 : bodyBytesOf(body);
  if (body !== undefined) {
    if (bytes === body.length) encoding = 'latin1'; // all ASCII: latin1 writes the same bytes and is faster
    if (reply.headers?.['Content-Type'] === undefined) headers.push('Content-Type', 'application/json');
    if (!head && stream === undefined) headers.push('Content-Length', String(bytes));
  } else if (status !== 204 && status !== 304 && !head && stream === undefined) {
    headers.push('Content-Length', '0');
  }
  if (unread) headers.push('Connection', 'close');
  for (const name in reply.headers) headers.push(name, reply.headers[name] ?? '');
  res.writeHead(status, headers);
  if (stream !== undefined) {
    if (body !== undefined) write(res, body, encoding);
    pipeline(stream, res, () => undefined); // destroys both streams
    return;
  }
  const content = head ? undefined : body;
  if (unread && !req.destroyed) {
    if (content === undefined) res.flushHeaders();
    else write(res, content, encoding);
    endAfterDrain(res);
  } else if (content === undefined) res.end();
  else writeAndEnd(res, content, { bytes, encoding });
  if (content !== undefined && bytes > smallResponseBytes && isUnread(res, bytes))
    unreadResponses.add(res, callerGroup(address?.() ?? req.socket.remoteAddress ?? ''), bytes);
}

function writeAndEnd(
  res: ServerResponse,
  content: EncodedBody,
  { bytes, encoding }: { readonly bytes: number; readonly encoding: BufferEncoding },
): void {
  if (typeof content === 'string' && bytes < joinedBytesMax) res.end(content, encoding);
  else if (typeof content === 'string' && (bytes <= atOnceBytesMax || encoding !== 'latin1'))
    res.end(Buffer.from(content, encoding));
  else if (bytes <= atOnceBytesMax) {
    write(res, content, encoding);
    res.end();
  } else pipeline(Readable.from(piecesOf(content), { objectMode: false }), res, () => undefined);
}

/** Returns whether a part of the content is still in memory. Long content is read by the response only later. */
const isUnread = (res: ServerResponse, bytes: number): boolean => bytes > atOnceBytesMax || res.writableLength > 0;

function write(res: ServerResponse, body: EncodedBody, encoding: BufferEncoding): void {
  if (typeof body === 'string') res.write(body, encoding);
  else for (const piece of body) res.write(piece, 'latin1'); // ASCII: latin1 writes the same bytes and is faster
}

/** Yields ASCII content in pieces. Copying all of it at once would block the event loop for tens of milliseconds. */
function* piecesOf(content: EncodedBody): Generator<Buffer> {
  for (const part of typeof content === 'string' ? [content] : content) {
    if (typeof part !== 'string') yield part;
    else for (let at = 0; at < part.length; at += pieceChars) yield Buffer.from(part.slice(at, at + pieceChars), 'latin1');
  }
}

/**
 * Returns whether the whole body was read. Its `end` event may still be due, because `readBody` returns a complete body at once. `readBody`
 * pauses a body that it refuses.
 */
const isRead = (req: IncomingMessage): boolean =>
  req.readableEnded || (req.complete && req.readableDidRead && req.readableLength === 0 && !req.isPaused());
