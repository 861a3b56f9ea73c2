import type { RequestListener, Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Reply } from '../reply/reply.ts';
import { expectationFailed, RequestError, requestErrorReply } from '../reply/request-error.ts';
import { sendReply } from '../reply/send.ts';
import { endpointOf } from './connections.ts';
import { inOrder } from './in-order.ts';
import { installListVerb } from './list-verb.ts';
import { OpenResponses } from './open-responses.ts';
import { refuseHandshake } from './parse-refusals.ts';
import { reading } from './reading.ts';

/**
 * How long a connection may make no progress while a response is due or being sent, in milliseconds. A caller that reads slowly makes
 * progress.
 */
const stillMsMax = 120_000;

/**
 * Makes `front` answer every event of `server`, so that Node itself never responds. Create the server with `requireHostHeader: false`:
 * `front` checks the header. A request with more than `headersMax` headers is refused.
 * @param limits.headBytesMax - length of the head of a LIST request; that of other requests is an option of the server
 */
export function attachFront(
  server: Server,
  front: RequestListener,
  { headersMax = 1_000, ...limits }: { readonly headersMax?: number; readonly headBytesMax?: number } = {},
): void {
  const open = new OpenResponses();
  const counted: RequestListener = (req, res) => {
    if (req.rawHeaders.length <= 2 * headersMax) front(req, res);
    else sendReply(res, tooManyHeaders(headersMax), { head: req.method === 'HEAD' });
  };
  const serve = inOrder(open, counted);
  // Node would drop the headers beyond a number in silence, such as the address that a proxy adds as the last one.
  server.maxHeadersCount = 0;
  server.on('request', serve);
  reading.watch(server);
  // The body reader decides whether `100 Continue` is sent.
  server.on('checkContinue', serve);
  const refuseExpectation = inOrder(open, (req, res) =>
    sendReply(res, requestErrorReply(expectationFailed()), { head: req.method === 'HEAD' }),
  );
  server.on('checkExpectation', refuseExpectation);
  server.timeout = stillMsMax;
  if (server instanceof TlsServer) refuseFailedHandshakes(server);
  installListVerb(server, counted, { ...limits, open });
}

/** Ends connections whose handshake fails: a graceful close would wait forever. */
function refuseFailedHandshakes(server: TlsServer): void {
  const sockets = new Map<string, Socket>();
  server.on('connection', (raw: Socket) => {
    const endpoint = endpointOf(raw);
    sockets.set(endpoint, raw);
    raw.once('close', () => {
      if (sockets.get(endpoint) === raw) sockets.delete(endpoint);
    });
  });
  server.on('tlsClientError', (error, socket) => refuseHandshake(socket, sockets.get(endpointOf(socket)), error));
}

const tooManyHeaders = (max: number): Reply =>
  requestErrorReply(new RequestError('head_too_large', `the request has too many headers: at most ${max} are accepted`));
