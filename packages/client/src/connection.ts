import { RefusedError, UnansweredError } from './errors.ts';
import { isOfOneNode, type Path, urlOf } from './paths.ts';
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
  /** Of the nodes, such as `https://n1.example:8200`: each is tried when the one before does not answer. */
  readonly addresses: readonly string[];
  readonly token?: string;
  readonly namespace?: string;
  /** For one attempt, 60 s unless given. */
  readonly timeoutMs?: number;
  /** How often all addresses are tried again, twice unless given. */
  readonly retries?: number;
  /** In the place of the global one, e.g. with certificates of its own. */
  readonly fetch?: typeof fetch;
  /** Waits between rounds. */
  readonly delay?: (ms: number) => Promise<void>;
}

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string>>;
  /** How long the answer waits, wrapped into a token of its own, such as `5m`. */
  readonly wrapTtl?: string;
  /** It may be asked twice without harm; reads always are. */
  readonly repeatable?: boolean;
  /** The token is not sent: the answer needs none. */
  readonly open?: boolean;
  /** In the place of the client's own. */
  readonly token?: string;
  /** No time limit: an answer may take minutes. */
  readonly slow?: boolean;
  readonly signal?: AbortSignal;
}

/** A body that is no JSON. It can be read once, so the request is sent once. */
export type Streamed = ReadableStream<Uint8Array>;

interface Asked extends RequestOptions {
  readonly method: Method;
  readonly path: Path;
  readonly body?: unknown;
  /** Such statuses are answers too, whatever they are otherwise. */
  readonly accepts?: (status: number) => boolean;
}

interface Failure {
  readonly error: RefusedError | UnansweredError;
  readonly verdict: Verdict;
}

/** Sends requests to the first address that answers them, and again where that is safe. */
export class Connection {
  readonly #addresses: readonly string[];
  readonly #namespace: string | undefined;
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #fetch: typeof fetch;
  readonly #delay: (ms: number) => Promise<void>;
  /** The place of the address that answered last. */
  #preferred = 0;
  #index: string | undefined;
  token: string | undefined;

  /** @throws TypeError for addresses that are none */
  constructor({ addresses, token, namespace, timeoutMs = 60_000, retries = 2, ...effects }: ClientOptions) {
    for (const address of addresses) {
      const { protocol, username, password } = new URL(address);
      if (!/^https?:$/.test(protocol) || username !== '' || password !== '')
        throw new TypeError('an address begins with https:// or http://');
    }
    if (addresses.length === 0) throw new TypeError('there is no address');
    this.#addresses = addresses;
    this.token = token;
    this.#namespace = namespace;
    this.#timeoutMs = timeoutMs;
    this.#retries = retries;
    this.#fetch = effects.fetch ?? fetch;
    this.#delay = effects.delay ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms)));
  }

  /**
   * What `read` makes of the answer, whose status says that it is one.
   * @throws RefusedError, UnansweredError, PathError
   */
  async send<T>(asked: Asked, read: (response: Response) => Promise<T>): Promise<T> {
    const local = isOfOneNode(asked.path);
    const isOnce = isStream(asked.body);
    const repeatable = asked.wrapTtl === undefined && (asked.repeatable ?? (asked.method === 'GET' || asked.method === 'LIST'));
    for (let round = 1; ; round++) {
      const failures: Failure[] = [];
      for (const place of local ? [0] : this.#order()) {
        const tried = await this.#try(asked, place, { local, repeatable, read });
        if ('answer' in tried) {
          if (!local) this.#preferred = place;
          return tried.answer;
        }
        failures.push(tried);
        if (isOnce || !mayRepeat(tried.verdict, { repeatable })) throw tried.error;
      }
      if (round > this.#retries || failures.every(({ verdict }) => verdict === 'elsewhere')) throw mostTelling(failures);
      await this.#delay(waitMs(round, shortestWait(failures)));
    }
  }

  /** All addresses, from the one that answered last. */
  #order(): readonly number[] {
    return this.#addresses.map((_, step) => (this.#preferred + step) % this.#addresses.length);
  }

  async #try<T>(
    asked: Asked,
    place: number,
    {
      local,
      repeatable,
      read,
    }: { readonly local: boolean; readonly repeatable: boolean; readonly read: (response: Response) => Promise<T> },
  ): Promise<{ readonly answer: T } | Failure> {
    const address = this.#addresses[place] ?? '';
    const { method, path, query, body, accepts = isSuccess } = asked;
    const url = urlOf(address, path, method === 'LIST' ? { ...query, list: 'true' } : query);
    const headers = this.#headers(asked, { local });
    if (!Object.values(headers).every((value) => headerValue.test(value))) throw unsendable(address);
    try {
      const response = await this.#fetch(url, {
        method: method === 'LIST' ? 'GET' : method,
        headers,
        // Elsewhere the token would be shown to somebody who was not asked.
        redirect: 'manual',
        signal: this.#signal(asked),
        ...(body !== undefined && (isStream(body) ? { body, duplex: 'half' } : { body: JSON.stringify(body) })),
      });
      const told = response.headers.get(indexHeader);
      if (told !== null && !local) this.#index = newerIndex(this.#index, told);
      if (accepts(response.status)) return { answer: await read(response) };
      return this.#refused(response, await response.text());
    } catch (error) {
      if (asked.signal?.aborted === true) throw error;
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

  #headers({ token = this.token, open, wrapTtl, body }: Asked, { local }: { readonly local: boolean }): Record<string, string> {
    return {
      ...(open !== true && token !== undefined && { 'X-Service-Token': token }),
      ...(this.#namespace !== undefined && { 'X-Service-Namespace': this.#namespace }),
      ...(wrapTtl !== undefined && { 'X-Service-Wrap-TTL': wrapTtl }),
      ...(!local && this.#index !== undefined && { [indexHeader]: this.#index }),
      ...(body !== undefined && { 'Content-Type': isStream(body) ? 'application/octet-stream' : 'application/json' }),
    };
  }

  #signal({ slow, signal }: Asked): AbortSignal | null {
    const signals = [...(signal ? [signal] : []), ...(slow === true ? [] : [AbortSignal.timeout(this.#timeoutMs)])];
    return signals.length === 0 ? null : AbortSignal.any(signals);
  }

  #refused({ status, headers }: Response, text: string): Failure {
    const body = parsed(text);
    const answer: FailedAnswer = { status, errors: errorsIn(body), retryAfterS: secondsIn(headers.get('Retry-After')) };
    if (isOfOtherCluster(answer)) this.#index = undefined;
    const verdict = verdictOfAnswer(answer);
    return { verdict, error: new RefusedError({ ...answer, outcome: outcomeOf(verdict), body }) };
  }
}

const headerValue = /^[\x20-\x7e]*$/;
/** Before `fetch` sees it, whose own complaint quotes the value. */
const unsendable = (address: string): UnansweredError =>
  new UnansweredError({
    address,
    outcome: 'not_done',
    reason: 'the token, or what else is sent as a header, has a character that cannot be sent',
    changes: false,
  });

const isSuccess = (status: number): boolean => status >= 200 && status < 300;

const isStream = (body: unknown): body is Streamed => body instanceof ReadableStream;

/** What a server said, rather than that another one said nothing. */
function mostTelling(failures: readonly Failure[]): Error {
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
 * The codes of an error, of its causes, and of all of them where there are several. Those of reading and writing are told as such: a network
 * that goes away under a connection has the codes of one that was never there.
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
