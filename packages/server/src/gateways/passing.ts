import type { Agent, ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import {
  announcesBody,
  clientCertificateOf,
  endAfterDrain,
  overloaded,
  type Reply,
  refusalReply,
  refusedForNow,
  requestErrorReply,
  sendReply,
} from '@transitd/http';
import { nodeHttp } from '@transitd/process';
import type { MainThreadAddress } from './messages.ts';
import { gatewayHeader, senderText } from './sender.ts';

/** How long a complete request may wait for the answer, in milliseconds. A restore of a snapshot sends nothing for minutes. */
const answerMsMax = 30 * 60_000;
/** Pause before another attempt to connect, in milliseconds, and number of attempts. The backlog of the socket may be full for a moment. */
const retryMs = 20;
const attemptsMax = 100;

/** How long an unused connection to the main thread stays open, in milliseconds. */
const defaultIdleMs = 5_000;

/** Headers that apply to one connection only (RFC 9110 §7.6.1), and the header that only this module may set. */
const ofConnection = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  gatewayHeader,
]);

/** Methods of requests that change no records except a token's number of uses. */
const reading = new Set(['GET', 'HEAD', 'LIST']);

/** Methods for which Node sends no body unless a header announces one. */
const bodiless = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']);

/** Passes complete requests of a gateway to the main thread over a Unix domain socket. */
export class Passing {
  readonly #main: MainThreadAddress;
  readonly #agent: Agent;

  constructor(main: MainThreadAddress, { idleMs = defaultIdleMs } = {}) {
    this.#main = main;
    // The agent's timeout closes only connections without a request. The newest connection is used first, so that the oldest ones become
    // unused and close.
    this.#agent = new (nodeHttp().Agent)({ keepAlive: true, maxFreeSockets: 32, scheduling: 'lifo', timeout: idleMs });
  }

  /**
   * Copies the main thread's answer to `res`.
   * @param listener - index of the listener that received the request
   * @param body - the body, if it was read already; otherwise it is streamed
   */
  pass(listener: number, req: IncomingMessage, res: ServerResponse, body?: Buffer, attempt = 1): void {
    if (res.destroyed) return; // the client disconnected between two attempts
    let upstream: ClientRequest;
    try {
      upstream = nodeHttp().request({
        socketPath: this.#main.socketPath,
        agent: this.#agent,
        method: req.method,
        path: req.url,
        headers: this.#headersOf(listener, req, body),
        setHost: false,
      });
    } catch {
      // Node accepts some characters that it refuses to send.
      sendReply(
        res,
        { status: 400, errors: ['the request line or a header has an invalid character'] },
        { head: req.method === 'HEAD' },
      );
      return;
    }
    let isConnected = false;
    const wait = waitOf(req);
    const onClose = (): void => void upstream.destroy();
    res.once('close', onClose);
    upstream.once('socket', (socket) => {
      const send = (): void => {
        isConnected = true;
        if (body !== undefined || !announcesBody(req)) {
          upstream.end(body);
          wait.begin();
        } else {
          if (req.readableLength === 0) upstream.flushHeaders(); // the main thread may refuse the request before its body arrives
          req.once('end', wait.begin).pipe(upstream);
        }
      };
      if (socket.connecting) socket.once('connect', send);
      else send();
    });
    upstream.on('continue', () => res.writeContinue());
    let answer: IncomingMessage | undefined;
    upstream.once('response', (received) => {
      answer = received;
      req.off('end', wait.begin);
      wait.end();
      copyAnswer(answer, req, res);
    });
    upstream.on('error', () => {
      res.off('close', onClose);
      // The main thread may close the connection after its answer, while the rest of the body is still arriving.
      if (res.destroyed || answer?.complete === true) return;
      if (res.headersSent) res.destroy();
      else if (!isConnected && attempt < attemptsMax) setTimeout(() => this.pass(listener, req, res, body, attempt + 1), retryMs);
      else {
        sendReply(res, isConnected ? unanswered(req) : requestErrorReply(overloaded()), { head: req.method === 'HEAD' });
      }
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  #headersOf(listener: number, req: IncomingMessage, body: Buffer | undefined): string[] {
    const { rawHeaders, headers, socket, httpVersion, method = '' } = req;
    const passed = [gatewayHeader, senderText(this.#main.secret, listener, socket, clientCertificateOf(socket))];
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
      if (!ofConnection.has(name.toLowerCase())) passed.push(name, value);
    }
    const coding = headers['transfer-encoding'];
    // The header is passed unchanged: the main thread refuses codings other than chunked.
    if (body === undefined && coding !== undefined) passed.push('Transfer-Encoding', coding);
    // Otherwise Node adds `Transfer-Encoding: chunked` to requests whose method usually has a body, and a LIST request with that header is
    // refused.
    else if (headers['content-length'] === undefined && !bodiless.has(method)) passed.push('Content-Length', '0');
    // A request of HTTP/1.0 needs no Host header, but the HTTP/1.1 request that this thread sends does.
    if (httpVersion === '1.0' && headers.host === undefined) passed.push('Host', 'localhost');
    return passed;
  }
}

/** Returns the reply for a request that reached the main thread but got no answer. */
const unanswered = ({ method = '' }: IncomingMessage): Reply =>
  reading.has(method)
    ? refusalReply(refusedForNow(503), 'the node did not answer; a token with a limited number of uses may have lost a use')
    : refusalReply({ status: 504, outcome: 'unknown' }, 'the node did not answer');

/** Returns one function that restarts the time limit for the main thread's answer, and one that ends the limit. */
function waitOf({ socket, method }: IncomingMessage): { readonly begin: () => void; readonly end: () => void } {
  const { timeout: stillMs = 0 } = socket;
  if (method === 'LIST') return { begin: () => undefined, end: () => undefined }; // such a connection has a single deadline
  return { begin: () => void socket.setTimeout(answerMsMax), end: () => void socket.setTimeout(stillMs) };
}

function copyAnswer(answer: IncomingMessage, req: IncomingMessage, res: ServerResponse): void {
  const headers: string[] = [];
  const { rawHeaders, statusCode = 502 } = answer;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]];
    const key = name.toLowerCase();
    if (!ofConnection.has(key)) headers.push(name, value);
    else if (key === 'connection' && value.toLowerCase() === 'close') headers.push(name, value);
  }
  if (res.destroyed) {
    answer.destroy();
    return;
  }
  res.writeHead(statusCode, headers);
  answer.once('error', () => res.destroy());
  answer.once('end', () => {
    if (req.complete || !announcesBody(req)) res.end();
    else endAfterDrain(res);
  });
  answer.pipe(res, { end: false });
}
