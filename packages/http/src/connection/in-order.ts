import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { turns } from '@transitd/event-loop';
import type { OpenResponses } from './open-responses.ts';
import { type Reading, reading } from './reading.ts';

/**
 * Reading pauses when a connection has more pipelined requests than this, including the current one. The limit is low, because a disconnect
 * is noticed only once reading resumes.
 */
const readMax = 32;
/** Pipelined requests that one connection may have while too many wait over all connections; a connection with more is closed. */
const keptMax = 4;

/**
 * Serves the pipelined requests of a connection one after the other. The next request begins in its own event-loop turn after the previous
 * response was written (HTTP/1.1 sends responses in order anyway). While many requests of a connection wait, the connection is not read.
 * When too many wait over all connections, a connection that sends another request is closed. Requests after a response that ends the
 * connection are not served (RFC 9112 §9.6).
 */
export function inOrder(open: OpenResponses, serve: RequestListener, reads: Reading = reading): RequestListener {
  const held = new WeakSet<Duplex>();
  const hold = (socket: Duplex): void => {
    socket.pause();
    if (held.has(socket)) return;
    held.add(socket);
    // Node may resume the socket itself, for example at the end of a body.
    socket.on('resume', () => {
      if (open.count(socket) > readMax) socket.pause();
    });
  };
  const serveNext = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const { socket } = req;
    if (socket.destroyed) return; // no event-loop turn for a closed connection
    await turns.next();
    if (res.destroyed || socket.destroyed || socket.writableEnded) return;
    if (open.count(socket) === readMax) socket.resume();
    serve(req, res);
  };
  return (req, res) => {
    const begin = (): void => {
      reads.begins();
      void serveNext(req, res);
    };
    if (!open.afterPrevious(res, begin)) {
      serve(req, res);
      return;
    }
    const { socket } = req;
    reads.pipelined(socket);
    const count = open.count(socket);
    if (count > keptMax && reads.isCrowded) reads.close(socket);
    else if (count > readMax) hold(socket);
  };
}
