import type { RequestListener, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorReply, expectationFailed } from './error-answer.ts';
import { installListVerb } from './list-verb.ts';
import { sendReply } from './reply.ts';

/** How long a connection may stand still while an answer is due or under way; a caller that reads slowly makes progress. */
const stillMsMax = 120_000;

/**
 * Connects `front` with everything that a caller can make `server` say, so that each answer is one of ours. The server was made with
 * `requireHostHeader: false`: `front` looks at it.
 */
export function attachFront(server: Server, front: RequestListener): void {
  server.on('request', front);
  // The body reader decides whether a caller that asks first may send at all.
  server.on('checkContinue', front);
  server.on('checkExpectation', (req, res) => sendReply(res, errorReply(expectationFailed()), { head: req.method === 'HEAD' }));
  server.timeout = stillMsMax;
  // Who does not come through the handshake can be told nothing: an answer would wait for it for ever.
  server.on('tlsClientError', (_error, socket: Duplex) => socket.destroy());
  installListVerb(server, front);
}
