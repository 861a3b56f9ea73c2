// Refusals of requests that Node's parser refuses.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errorsText } from '../reply/encode.ts';
import { strictTransportSecurity } from '../reply/send.ts';

/** A parse error of node:http. */
export interface ParseError extends Error {
  readonly code?: string;
  readonly bytesParsed?: number;
  readonly rawPacket?: Buffer;
}

const refusals: Readonly<Record<string, readonly [statusLine: string, text: string]>> = {
  CONNECT: ['405 Method Not Allowed', 'unsupported operation'],
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the request head is too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Content Too Large', 'http: request body too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request did not arrive in time'],
};

const withoutTls = ['400 Bad Request', 'Client sent an HTTP request to an HTTPS server.'] as const;

/** OpenSSL's errors for a client that does not begin with TLS. It knows four methods and CONNECT; to others it misses the version. */
const errorsWithoutTls: ReadonlySet<string | undefined> = new Set([
  'ERR_SSL_HTTP_REQUEST',
  'ERR_SSL_HTTPS_PROXY_REQUEST',
  'ERR_SSL_WRONG_VERSION_NUMBER',
]);

/**
 * Ends a connection after a failed handshake. A client that speaks HTTP without TLS gets a readable refusal.
 * @param raw - the socket below TLS
 */
export function refuseHandshake(socket: Duplex, raw: Socket | undefined, { code }: ParseError): void {
  if (raw === undefined || !errorsWithoutTls.has(code) || !raw.writable) {
    socket.destroy();
    return;
  }
  raw.once('close', () => socket.destroy());
  sendRefusal(raw, withoutTls);
}

/**
 * Refuses a request that the parser refused, and ends its connection. The request has no response object, so the response is written to the
 * socket directly.
 */
export function refuse(socket: Socket, { code, rawPacket }: ParseError): void {
  if (!socket.writable || code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const reason = code === 'HPE_INVALID_METHOD' && wellFormed(rawPacket) ? 'CONNECT' : (code ?? '');
  sendRefusal(socket, refusals[reason] ?? ['400 Bad Request', 'malformed HTTP request']);
}

function sendRefusal(socket: Socket, [statusLine, text]: readonly [statusLine: string, text: string]): void {
  const body = errorsText([text]);
  const head = `HTTP/1.1 ${statusLine}\r\nCache-Control: no-store\r\nStrict-Transport-Security: ${strictTransportSecurity}\r\n`;
  const close = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
  socket.end(head + close + body, 'latin1', () => socket.destroy());
}

/** Returns whether a packet begins with a valid request line with an unknown method (RFC 9110 §9.1: a method is a token). */
const wellFormed = (packet: Buffer | undefined): boolean =>
  packet !== undefined && /^(?:\r?\n)*[!#$%&'*+.^_`|~\w-]+ \S+ HTTP\/1\.[01]\r\n/.test(packet.toString('latin1', 0, 16_384));

/** Refuses a malformed request after the response of the open request, which was well-formed and may have taken effect. */
export function refuseAfter(open: ServerResponse, socket: Socket, error: ParseError, deadlineMs: number): void {
  const deadline = setTimeout(() => socket.destroy(), deadlineMs);
  open.once('close', () => {
    clearTimeout(deadline);
    // The connection ends after the open request, so the content of the packet does not matter.
    refuse(socket, Object.assign(new Error(error.message), { code: error.code ?? '' }));
  });
}
