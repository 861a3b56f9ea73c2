import type { RequestListener, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { sendReply } from '../reply/reply.ts';
import { expectationFailed, requestErrorReply } from '../reply/request-error.ts';
import { inOrder } from './in-order.ts';
import { installListVerb, type ListVerbOptions } from './list-verb.ts';
import { OpenResponses } from './open-responses.ts';
import { reading } from './reading.ts';

/**
 * How long a connection may make no progress while a response is due or being sent, in milliseconds. A caller that reads slowly makes
 * progress.
 */
const stillMsMax = 120_000;

/**
 * Makes `front` answer every event of `server`, so that Node itself never responds. Create the server with `requireHostHeader: false`:
 * `front` checks the header.
 * @param listHead - limits of the head of a LIST request, if they are not the usual ones
 */
export function attachFront(
  server: Server,
  front: RequestListener,
  listHead: Pick<ListVerbOptions, 'headBytesMax' | 'headersMax'> = {},
): void {
  const open = new OpenResponses();
  const serve = inOrder(open, front);
  server.on('request', serve);
  reading.watch(server);
  // The body reader decides whether `100 Continue` is sent.
  server.on('checkContinue', serve);
  const refuseExpectation = inOrder(open, (req, res) =>
    sendReply(res, requestErrorReply(expectationFailed()), { head: req.method === 'HEAD' }),
  );
  server.on('checkExpectation', refuseExpectation);
  server.timeout = stillMsMax;
  // After a failed handshake no response can be sent; a graceful close would wait forever.
  server.on('tlsClientError', (_error, socket: Duplex) => socket.destroy());
  installListVerb(server, front, { ...listHead, open });
}
