import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { answerTo, nodeHttp } from '@transitd/process';

/** TLS settings of the connections to a provider; PEM. */
export interface ProviderTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
  readonly skipVerify: boolean;
}

export interface ProviderRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Path below the address, such as `/v1/sys/seal-status`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, a string unchanged. */
  readonly body?: object | string;
  /** Whether the answer is plain text. */
  readonly text?: boolean;
}

export interface ProviderAnswer {
  readonly status: number;
  /** Undefined if the body is not JSON. */
  readonly json: unknown;
  /** The body, if the request asked for plain text. */
  readonly text?: string;
  /** The delay in the `Retry-After` header, in ms. */
  readonly retryAfterMs?: number;
}

/** Sends one request and resolves with its answer, whatever the status is. @throws Error if no answer arrived */
export type Exchange = (request: ProviderRequest) => Promise<ProviderAnswer>;

/** Returns a function that sends requests to an address. */
export type Connect = (address: string) => Exchange;

/** Deadline for one request and its answer. */
const defaultDeadlineMs = 10_000;
/** Maximum size of an answer. */
const answerBytesMax = 64 * 1024;

/** Connects with the system's certificate authorities. */
export const connect: Connect = (address) => exchangeWith(address, { skipVerify: false });

/** Sends each request to this address on a new connection. Follows no redirects. */
export const exchangeWith =
  (address: string, { ca, cert, key, serverName, skipVerify }: ProviderTls, deadlineMs = defaultDeadlineMs): Exchange =>
  async ({ method, path, headers, body, text: wantsText = false }) => {
    const url = new URL(path, address);
    // A path such as `//host/` would lead to another host, which would get the credentials.
    if (url.origin !== new URL(address).origin) throw new Error('the path leads to another host');
    const text = typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body);
    const sent = {
      ...(typeof body === 'object' && { 'content-type': 'application/json' }),
      ...headers,
      ...(method !== 'GET' && { 'content-length': String(Buffer.byteLength(text)) }),
    };
    const signal = AbortSignal.timeout(deadlineMs);
    const options = { method, headers: sent, signal, agent: false } as const;
    const secure = {
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(serverName !== undefined && { servername: serverName }),
      rejectUnauthorized: !skipVerify,
    };
    const outgoing = url.protocol === 'https:' ? httpsRequest(url, { ...options, ...secure }) : nodeHttp().request(url, options);
    const answer = answerTo(outgoing, signal, (response: IncomingMessage) => answerOf(response, wantsText));
    outgoing.end(text);
    try {
      return await answer;
    } catch (error) {
      throw signal.aborted ? new Error(`no answer within ${deadlineMs / 1000} s`) : withMessage(error as Error);
    }
  };

async function answerOf(response: IncomingMessage, wantsText: boolean): Promise<ProviderAnswer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > answerBytesMax) throw new Error(`its answer has more than ${answerBytesMax} bytes`); // this ends the connection
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const json = wantsText ? undefined : jsonIn(body);
  const text = wantsText ? body.toString('utf8') : undefined;
  for (const chunk of [...chunks, body]) chunk.fill(0); // it may contain a key
  const seconds = Number(response.headers['retry-after']);
  return {
    status: response.statusCode ?? 0,
    json,
    ...(text !== undefined && { text }),
    ...(Number.isFinite(seconds) && seconds > 0 && { retryAfterMs: seconds * 1000 }),
  };
}

function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

/** Returns the error. If it has no message, as after failed attempts at several addresses, its code becomes the message. */
const withMessage = (error: Error): Error =>
  error.message === '' ? new Error((error as NodeJS.ErrnoException).code ?? 'it cannot be reached') : error;
