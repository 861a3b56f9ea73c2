import type { RequestListener, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { sendReply } from '../reply/reply.ts';
import { expectationFailed, requestErrorReply } from '../reply/request-error.ts';
import { inOrder } from './in-order.ts';
import { installListVerb } from './list-verb.ts';
import { OpenResponses } from './open-responses.ts';
import { reading } from './reading.ts';

/** How long a connection may stand still while an answer is due or under way; a caller that reads slowly makes progress. */
const stillMsMax = 120_000;

/**
 * Connects `front` with everything that a caller can make `server` say, so that each answer is one of ours. The server was made with
 * `requireHostHeader: false`: `front` looks at it.
 */
export function attachFront(server: Server, front: RequestListener): void {
  const open = new OpenResponses();
  const serve = inOrder(open, front);
  server.on('request', serve);
  reading.watch(server);
  // The body reader decides whether a caller that asks first may send at all.
  server.on('checkContinue', serve);
  const refuseExpectation = inOrder(open, (req, res) =>
    sendReply(res, requestErrorReply(expectationFailed()), { head: req.method === 'HEAD' }),
  );
  server.on('checkExpectation', refuseExpectation);
  server.timeout = stillMsMax;
  // Who does not come through the handshake can be told nothing: an answer would wait for it for ever.
  server.on('tlsClientError', (_error, socket: Duplex) => socket.destroy());
  installListVerb(server, front, { open });
}
