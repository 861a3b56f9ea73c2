import { RefusedError, UnansweredError } from './errors.ts';
import { type HealthOptions, NodeChoice } from './node-choice.ts';
import { isOfOneNode, type Path, textOf, urlOf } from './paths.ts';
import { indexHeader, newerIndex } from './service-index.ts';
import {
  type FailedAnswer,
  isOfOtherCluster,
  mayRepeat,
  outcomeOf,
  type Verdict,
  verdictOfAnswer,
  verdictOfFailure,
  waitMs,
} from './verdict.ts';

export type Method = 'GET' | 'LIST' | 'POST' | 'PUT' | 'DELETE';

export interface ClientOptions {
  /** Addresses of the nodes, such as `https://n1.example:8200`. If one does not respond, the next is tried. */
  readonly addresses: readonly string[];
  /**
   * Chooses nodes by their health: nodes that serve before others, the nearest first, and the active node for changes. When absent, the
   * addresses are tried in order, beginning with the one that responded last. The addresses must be those of nodes, not of a proxy.
   */
  readonly byHealth?: HealthOptions;
  readonly token?: string;
  readonly namespace?: string;
  /** Time limit of one attempt; 60 s when absent. */
  readonly timeoutMs?: number;
  /** How often all addresses are tried again; 2 when absent. */
  readonly retries?: number;
  /** Replaces the global `fetch`, for example to use other certificates. */
  readonly fetch?: typeof fetch;
  /** Waits between rounds. */
  readonly delay?: (ms: number) => Promise<void>;
  /** Milliseconds, of a clock that never goes back. */
  readonly nowMs?: () => number;
}

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string>>;
  /** Wraps the response in a token with this TTL, such as `5m`. */
  readonly wrapTtl?: string;
  /** Whether the request is safe to repeat; by default, only reads are. */
  readonly repeatable?: boolean;
  /** Sends no token, since the path needs none. */
  readonly open?: boolean;
  /** Replaces the client's own token. */
  readonly token?: string;
  /** Sets no time limit, since the response may take minutes. */
  readonly slow?: boolean;
  readonly signal?: AbortSignal;
}

/** A body other than JSON. It can be read only once, so the request is sent only once. */
export type Streamed = ReadableStream<Uint8Array>;

/** Sends a request to a path below `/v1/`. The caller asserts the type of the response body; it is undefined for 204. */
export type SendRequest = <Body>(
  method: Method,
  path: Path,
  body?: unknown,
  options?: RequestOptions & { readonly accepts?: (status: number) => boolean },
) => Promise<Body>;

/** Sends a GET request and returns the response body as a stream. */
export type Download = (path: Path, options?: RequestOptions) => Promise<Streamed>;

interface ClientRequest extends RequestOptions {
  readonly method: Method;
  readonly path: Path;
  readonly body?: unknown;
  /** Returns whether a status is a success; 2xx when absent. */
  readonly accepts?: (status: number) => boolean;
}

interface Failure {
  readonly error: RefusedError | UnansweredError;
  readonly verdict: Verdict;
}

/** Sends requests to the first address that responds. Repeats them where that is safe. */
export class Connection {
  readonly #addresses: readonly string[];
  readonly #namespace: string | undefined;
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #fetch: typeof fetch;
  readonly #delay: (ms: number) => Promise<void>;
  readonly #choice: NodeChoice | undefined;
  /** Position of the address that responded last. */
  #preferred = 0;
  #index: string | undefined;
  token: string | undefined;

  /** @throws TypeError for an invalid address */
  constructor({ addresses, token, namespace, timeoutMs = 60_000, retries = 2, byHealth, ...effects }: ClientOptions) {
    for (const address of addresses) {
      const { protocol, username, password } = new URL(address);
      if (!/^https?:$/.test(protocol) || username !== '' || password !== '')
        throw new TypeError('an address must begin with https:// or http:// and have no user name or password');
    }
    if (addresses.length === 0) throw new TypeError('at least one address is required');
    this.#addresses = addresses;
    this.token = token;
    this.#namespace = namespace;
    this.#timeoutMs = timeoutMs;
    this.#retries = retries;
    this.#fetch = effects.fetch ?? fetch;
    this.#delay = effects.delay ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms)));
    this.#choice =
      byHealth && new NodeChoice(addresses.length, byHealth, { ask: this.#askHealth, nowMs: effects.nowMs ?? nowMs });
  }

  /**
   * Sends a request and returns the result of `read` for its successful response.
   * @throws RefusedError, UnansweredError, PathError
   */
  async send<T>(request: ClientRequest, read: (response: Response) => Promise<T>): Promise<T> {
    const local = isOfOneNode(request.path);
    const isOnce = isStream(request.body);
    const repeatable =
      request.wrapTtl === undefined && (request.repeatable ?? (request.method === 'GET' || request.method === 'LIST'));
    for (let round = 1; ; round++) {
      const failures: Failure[] = [];
      for (const place of local ? [0] : await this.#order({ isChange: !repeatable })) {
        const tried = await this.#try(request, place, { local, repeatable, read });
        if ('answer' in tried) {
          if (!local) this.#preferred = place;
          return tried.answer;
        }
        failures.push(tried);
        if (!local && tried.verdict !== 'final') this.#choice?.failed(place);
        if (isOnce || !mayRepeat(tried.verdict, { repeatable })) throw tried.error;
      }
      if (round > this.#retries || failures.every(({ verdict }) => verdict === 'elsewhere')) throw mostInformative(failures);
      await this.#delay(waitMs(round, shortestWait(failures)));
    }
  }

  /** Returns the positions of all addresses in the order in which to try them. */
  async #order(request: { readonly isChange: boolean }): Promise<readonly number[]> {
    if (this.#choice !== undefined) return this.#choice.order(request);
    return this.#addresses.map((_, step) => (this.#preferred + step) % this.#addresses.length);
  }

  readonly #askHealth = async (place: number, timeoutMs: number): Promise<number> => {
    const url = urlOf(this.#addresses[place] ?? '', 'sys/health');
    const response = await this.#fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) });
    await response.body?.cancel();
    return response.status;
  };

  async #try<T>(
    request: ClientRequest,
    place: number,
    {
      local,
      repeatable,
      read,
    }: { readonly local: boolean; readonly repeatable: boolean; readonly read: (response: Response) => Promise<T> },
  ): Promise<{ readonly answer: T } | Failure> {
    const address = this.#addresses[place] ?? '';
    const { method, path, query, body, accepts = isSuccess } = request;
    const url = urlOf(address, path, method === 'LIST' ? { ...query, list: 'true' } : query);
    const headers = this.#headers(request, { local });
    if (!Object.values(headers).every((value) => headerValue.test(value))) throw unsendable(address);
    try {
      const response = await this.#fetch(url, {
        method: method === 'LIST' ? 'GET' : method,
        headers,
        // Following a redirect would send the token to another server.
        redirect: 'manual',
        signal: this.#signal(request),
        ...(body !== undefined && (isStream(body) ? { body, duplex: 'half' } : { body: JSON.stringify(body) })),
      });
      const received = response.headers.get(indexHeader);
      if (received !== null && !local) this.#index = newerIndex(this.#index, received);
      if (accepts(response.status)) return { answer: await read(response) };
      return this.#refused(request, response, await response.text());
    } catch (error) {
      if (request.signal?.aborted === true) throw error;
      const verdict = verdictOfFailure(codesOf(error));
      return {
        verdict,
        error: new UnansweredError(
          { address, outcome: outcomeOf(verdict), reason: reasonOf(error), changes: !repeatable },
          { cause: error },
        ),
      };
    }
  }

  #headers(
    { token = this.token, open, wrapTtl, body }: ClientRequest,
    { local }: { readonly local: boolean },
  ): Record<string, string> {
    return {
      ...(open !== true && token !== undefined && { 'X-Service-Token': token }),
      ...(this.#namespace !== undefined && { 'X-Service-Namespace': this.#namespace }),
      ...(wrapTtl !== undefined && { 'X-Service-Wrap-TTL': wrapTtl }),
      ...(!local && this.#index !== undefined && { [indexHeader]: this.#index }),
      ...(body !== undefined && { 'Content-Type': isStream(body) ? 'application/octet-stream' : 'application/json' }),
    };
  }

  #signal({ slow, signal }: ClientRequest): AbortSignal | null {
    const signals = [...(signal ? [signal] : []), ...(slow === true ? [] : [AbortSignal.timeout(this.#timeoutMs)])];
    return signals.length === 0 ? null : AbortSignal.any(signals);
  }

  #refused({ method, path }: ClientRequest, { status, headers }: Response, text: string): Failure {
    const body = parsed(text);
    const answer: FailedAnswer = { status, errors: errorsIn(body), retryAfterS: secondsIn(headers.get('Retry-After')) };
    if (isOfOtherCluster(answer)) this.#index = undefined;
    const verdict = verdictOfAnswer(answer);
    const request = `${method} ${textOf(path)}`;
    return { verdict, error: new RefusedError({ ...answer, request, outcome: outcomeOf(verdict), body }) };
  }
}

const nowMs = (): number => performance.now();

const headerValue = /^[\x20-\x7e]*$/;
/** Thrown before calling `fetch`, whose own error would quote the value. */
const unsendable = (address: string): UnansweredError =>
  new UnansweredError({
    address,
    outcome: 'not_done',
    reason: 'the token, the namespace or another header value contains a character that is not allowed in headers',
    changes: false,
  });

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

const isStream = (body: unknown): body is Streamed => body instanceof ReadableStream;

/** Returns the most informative error: a refusal rather than a missing response. */
function mostInformative(failures: readonly Failure[]): Error {
  const errors = failures.map(({ error }) => error);
  return errors.findLast((error) => error instanceof RefusedError) ?? errors.at(-1) ?? new Error('no address was tried');
}

function shortestWait(failures: readonly Failure[]): number | undefined {
  const waits = failures.flatMap(({ error }) =>
    'retryAfterS' in error && error.retryAfterS !== undefined ? [error.retryAfterS] : [],
  );
  return waits.length === 0 ? undefined : Math.min(...waits);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function errorsIn(body: unknown): readonly string[] {
  const errors: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, 'errors') : undefined;
  return Array.isArray(errors) ? errors.filter((text) => typeof text === 'string') : [];
}

const secondsIn = (header: string | null): number | undefined =>
  header !== null && /^\d{1,9}$/.test(header) ? Number(header) : undefined;

/**
 * Returns the codes of an error, of its cause, or of each of several errors. The code of a failed read or write call gets the name of
 * the call as a prefix, because a connection that fails later has the same codes as one that was never established.
 */
function codesOf(error: unknown): readonly string[] {
  if (typeof error !== 'object' || error === null) return [];
  const inner: unknown = Reflect.get(error, 'errors');
  if (Array.isArray(inner) && inner.length > 0) return inner.flatMap(codesOf);
  const [code, call]: unknown[] = [Reflect.get(error, 'code'), Reflect.get(error, 'syscall')];
  if (typeof code !== 'string') return codesOf(Reflect.get(error, 'cause'));
  return [call === 'read' || call === 'write' ? `${call} ${code}` : code];
}

function reasonOf(error: unknown): string {
  const [code] = codesOf(error);
  if (code !== undefined) return code;
  return error instanceof Error ? (error.cause instanceof Error ? error.cause.message : error.message) : 'unknown reason';
}
