import { type Json, objectIn, textsIn } from './json.ts';

/** A refusal of the API, or no answer (`status` 0). */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Returns a failure in the words of a page. */
export function refusalWords(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  return error.status === 403 ? 'your token may not do this' : error.message;
}

export type Verb = 'GET' | 'LIST' | 'POST' | 'DELETE';
export interface CallOptions {
  readonly body?: object;
  readonly signal?: AbortSignal;
}
interface RequestOptions extends CallOptions {
  readonly token?: string | undefined;
}

const answerMs = 10_000;

/** Sends a request and returns the JSON of the answer. @throws ApiError */
export async function send(verb: Verb, path: string, { signal, ...options }: RequestOptions): Promise<Json> {
  const timeout = AbortSignal.timeout(answerMs);
  const response = await open(verb, path, {
    ...options,
    signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
  });
  return parsed(await textOf(response));
}

/** Sends a request and returns its successful response, whose content may still arrive. @throws ApiError */
export async function open(verb: Verb, path: string, { body, signal, token }: RequestOptions): Promise<Response> {
  const isList = verb === 'LIST';
  if (leavesItsPlace(path)) throw new ApiError(400, 'a name in a path must not be . or ..');
  const target = `/v1/${path}${isList ? `${path.includes('?') ? '&' : '?'}list=true` : ''}`;
  const response = await fetch(target, {
    method: isList ? 'GET' : verb,
    headers: token === undefined ? {} : { 'X-Service-Token': token },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    credentials: 'omit',
    cache: 'no-store',
    redirect: 'error',
    referrerPolicy: 'no-referrer',
    ...(signal && { signal }),
  }).catch(noAnswer);
  if (response.ok) return response;
  const { errors } = parsed(await textOf(response));
  throw new ApiError(response.status, textsIn(errors).join('; ') || `the node answered with status ${response.status}`);
}

/** @throws ApiError always */
export const noAnswer = (): never => {
  throw new ApiError(0, 'this node does not answer');
};

const textOf = (response: Response): Promise<string> => response.text().catch(noAnswer);

export function parsed(text: string): Json {
  try {
    return objectIn(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Encodes each segment of a path that people typed or that a name is part of. */
export const segments = (path: string): string =>
  path
    .split('/')
    .filter((segment) => segment !== '')
    .map(encodeURIComponent)
    .join('/');

/** Whether the browser would resolve a part of the path away, so that a name in a link could change the target of a request. */
export const leavesItsPlace = (path: string): boolean =>
  path
    .split('?', 1)[0]
    ?.split('/')
    .some((part) => /^\.{1,2}$/.test(part)) === true;
