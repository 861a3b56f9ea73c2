import { AuthCalls } from './auth.ts';
import {
  type ClientOptions,
  Connection,
  type Download,
  type Method,
  type RequestOptions,
  type SendRequest,
} from './connection.ts';
import type { Path } from './paths.ts';
import { SysCalls } from './sys.ts';
import { TransitCalls } from './transit.ts';

/**
 * A client of a transitd cluster. Every call may throw `RefusedError` (the server refused it), `UnansweredError` (no server
 * responded) and `PathError` (a name is not valid in a path). A change that may have taken effect is never repeated.
 */
export class TransitdClient {
  readonly #connection: Connection;
  readonly sys: SysCalls;
  readonly auth: AuthCalls;

  /** @throws TypeError for an invalid address */
  constructor(options: ClientOptions) {
    this.#connection = new Connection(options);
    this.sys = new SysCalls(this.request, this.download);
    this.auth = new AuthCalls(this.request);
  }

  /** Sent with every request that needs a token. */
  set token(token: string | undefined) {
    this.#connection.token = token;
  }

  /** Returns the calls of a transit engine. @param mount - path of its mount */
  transit(mount = 'transit'): TransitCalls {
    return new TransitCalls(this.request, mount);
  }

  /** Sends any request. @param body - a value to send as JSON, or a stream, which is sent unchanged and only once */
  readonly request: SendRequest = <Body>(
    method: Method,
    path: Path,
    body?: unknown,
    options: RequestOptions & { readonly accepts?: (status: number) => boolean } = {},
  ): Promise<Body> => this.#connection.send({ method, path, body, ...options }, bodyOf<Body>);

  readonly download: Download = (path, options = {}) =>
    this.#connection.send({ method: 'GET', path, ...options }, async ({ body }) => body ?? new ReadableStream());
}

/** Decodes a response: JSON, or plain text (metrics). @throws Error for anything else, without quoting it */
async function bodyOf<Body>(response: Response): Promise<Body> {
  const text = await response.text();
  // Not checked: the API specifies the body of each path, and the caller names its type.
  return (text === '' ? undefined : isOf(response, 'text/plain') ? text : jsonIn(text, response)) as Body;
}

const isOf = ({ headers }: Response, type: string): boolean => headers.get('Content-Type')?.startsWith(type) === true;

function jsonIn(text: string, response: Response): unknown {
  try {
    if (isOf(response, 'application/json')) return JSON.parse(text);
  } catch {
    // reported below: the error of the parser would quote the response
  }
  throw new Error('the server at this address is not transitd');
}
