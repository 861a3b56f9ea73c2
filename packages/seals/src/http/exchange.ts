import { exchange } from '@transitd/http';

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
    const answer = await exchange(url, {
      ...{ method, headers: sent, body: text, deadlineMs, bytesMax: answerBytesMax, isText: wantsText },
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(serverName !== undefined && { servername: serverName }),
      rejectUnauthorized: !skipVerify,
    });
    const seconds = Number(answer.headers['retry-after']);
    return {
      status: answer.status,
      ...(wantsText ? { json: undefined, text: answer.text } : { json: answer.json }),
      ...(Number.isFinite(seconds) && seconds > 0 && { retryAfterMs: seconds * 1000 }),
    };
  };
