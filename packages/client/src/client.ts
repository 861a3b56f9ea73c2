import { AuthCalls } from './auth.ts';
import { type ClientOptions, Connection, type Method, type RequestOptions, type Streamed } from './connection.ts';
import type { Path } from './paths.ts';
import { SysCalls } from './sys.ts';
import { TransitCalls } from './transit.ts';

/** Asks a path below `/v1/`. The type of the answer is the caller's word for what the server answers there; nothing at all for 204. */
export type Ask = <Body>(
  method: Method,
  path: Path,
  body?: unknown,
  options?: RequestOptions & { readonly accepts?: (status: number) => boolean },
) => Promise<Body>;

/** An answer as it comes. */
export type Download = (path: Path, options?: RequestOptions) => Promise<Streamed>;

/**
 * A transitd service, by the addresses of its nodes. Every call may throw `RefusedError` (the server said no), `UnansweredError` (nobody
 * answered) and `PathError` (a name that cannot stand in a path). What may have taken effect is never asked twice.
 */
export class TransitdClient {
  readonly #connection: Connection;
  readonly sys: SysCalls;
  readonly auth: AuthCalls;

  /** @throws TypeError for addresses that are none */
  constructor(options: ClientOptions) {
    this.#connection = new Connection(options);
    this.sys = new SysCalls(this.request, this.download);
    this.auth = new AuthCalls(this.request);
  }

  /** Shown with every request that needs one. */
  set token(token: string | undefined) {
    this.#connection.token = token;
  }

  /** Keys and their operations. @param mount - where the engine is mounted */
  transit(mount = 'transit'): TransitCalls {
    return new TransitCalls(this.request, mount);
  }

  /** Any request. @param body - a value for JSON, or a stream, which is sent once and as it is */
  readonly request: Ask = <Body>(
    method: Method,
    path: Path,
    body?: unknown,
    options: RequestOptions & { readonly accepts?: (status: number) => boolean } = {},
  ): Promise<Body> => this.#connection.send({ method, path, body, ...options }, bodyOf<Body>);

  readonly download: Download = (path, options = {}) =>
    this.#connection.send({ method: 'GET', path, ...options }, async ({ body }) => body ?? new ReadableStream());
}

/** JSON as a value, plain text (metrics) as it is. @throws Error for anything else, which shows nothing of it */
async function bodyOf<Body>(response: Response): Promise<Body> {
  const text = await response.text();
  // The server's interface is the contract: what the caller names is what the path answers.
  return (text === '' ? undefined : isOf(response, 'text/plain') ? text : jsonIn(text, response)) as Body;
}

const isOf = ({ headers }: Response, type: string): boolean => headers.get('Content-Type')?.startsWith(type) === true;

function jsonIn(text: string, response: Response): unknown {
  try {
    if (isOf(response, 'application/json')) return JSON.parse(text);
  } catch {
    // told below: the error of the parser would quote the answer
  }
  throw new Error('what answers there does not speak the interface of transitd');
}
