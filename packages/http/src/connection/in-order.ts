import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { turns } from '@transitd/event-loop';
import type { OpenResponses } from './open-responses.ts';
import { type Reading, reading } from './reading.ts';

/** Requests of one connection, the one that is served among them, above which nothing more is read of it: fewer let a departure be seen. */
const readMax = 32;
/** Requests that one connection may have when too many wait over all connections: one that has more is cut. */
const keptMax = 4;

/**
 * Serves the requests of each connection one after the other: the next one begins when the answer before it has been written, in a
 * turn of its own (HTTP/1.1 sends answers in order anyway). While many wait, nothing more is read of their connection; when too many wait over
 * all connections, the connection that brings another one is cut. Requests behind an answer that ends the connection are not served at all
 * (RFC 9112 §9.6).
 */
export function inOrder(open: OpenResponses, serve: RequestListener, reads: Reading = reading): RequestListener {
  const held = new WeakSet<Duplex>();
  const hold = (socket: Duplex): void => {
    socket.pause();
    if (held.has(socket)) return;
    held.add(socket);
    // Node resumes the socket for reasons of its own, such as the end of a body.
    socket.on('resume', () => {
      if (open.count(socket) > readMax) socket.pause();
    });
  };
  const serveNext = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const { socket } = req;
    if (socket.destroyed) return; // it takes no turn
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
    if (count > keptMax && reads.isCrowded) socket.destroy();
    else if (count > readMax) hold(socket);
  };
}
