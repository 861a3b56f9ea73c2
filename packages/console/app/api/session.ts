import { type Json, objectIn, textIn, textsIn } from './json.ts';

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

/** The caller behind the token. */
export interface Caller {
  readonly name: string;
  readonly policies: readonly string[];
  readonly details: Json;
}

type Verb = 'GET' | 'LIST' | 'POST' | 'DELETE';
export interface CallOptions {
  readonly body?: object;
  readonly signal?: AbortSignal;
}

const answerMs = 10_000;

/**
 * The token of this page. It is held in this variable only: never in a URL, a cookie or the browser's storage, so it is gone when the page
 * is reloaded or closed.
 */
let token: string | undefined;
let caller: Caller | undefined;
/** Whether a login of this page issued the token: then nobody else has it. */
let isOwn = false;
let notice = '';
const listeners = new Set<() => void>();

/** The caller who is signed in. */
export const signedIn = (): Caller | undefined => caller;

/** Why the last session ended; empty if the caller signed out. */
export const lastNotice = (): string => notice;

/** Calls `listener` when someone signs in or out; returns a function that ends this. */
export function onSession(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Signs in with a token. @throws ApiError */
export async function signIn(withToken: string): Promise<void> {
  const { data } = await send('GET', 'auth/token/lookup-self', { token: withToken });
  begin(withToken, objectIn(data));
  isOwn = false;
}

/** Signs in with a name and a password. @param method - path of the auth method. @throws ApiError */
export async function signInByPassword(method: string, name: string, password: string): Promise<void> {
  const path = `auth/${segments(method)}/login/${encodeURIComponent(name)}`;
  const { auth } = await send('POST', path, { body: { password } });
  await signIn(textIn(objectIn(auth)['client_token']));
  isOwn = true;
}

/** Forgets the token. @param why - shown on the page that signs in */
export function signOut(why = ''): void {
  token = undefined;
  caller = undefined;
  notice = why;
  for (const listener of listeners) listener();
}

/** Ends the session at the caller's wish. A token that a login of this page issued is revoked; any other may be in use elsewhere. */
export function leave(): void {
  if (isOwn && token !== undefined) void send('POST', 'auth/token/revoke-self', { token }).catch(() => undefined);
  signOut();
}

/**
 * Sends a request with the token of this session and returns the JSON of the answer. A 403 may mean that the token has expired: then the
 * session ends.
 * @throws ApiError
 */
export async function call(verb: Verb, path: string, options: CallOptions = {}): Promise<Json> {
  const used = token;
  if (used === undefined) throw new ApiError(403, 'you are signed out');
  try {
    return await send(verb, path, { ...options, token: used });
  } catch (error) {
    if (error instanceof ApiError && error.status === 403 && !(await isValid(used)) && used === token)
      signOut('Your token is no longer valid. It has expired or was revoked.');
    throw error;
  }
}

/** Reads what a node tells everybody, also before anyone signs in. @throws ApiError */
export const readPublic = (_verb: 'GET', path: string, options: CallOptions = {}): Promise<Json> => send('GET', path, options);

function begin(newToken: string, data: Json): void {
  token = newToken;
  caller = {
    name: textIn(data['display_name']) || 'token',
    policies: textsIn(data['policies']),
    details: Object.fromEntries(Object.entries(data).filter(([name]) => name !== 'id')),
  };
  notice = '';
  for (const listener of listeners) listener();
}

/** Whether the token is valid. True as well if that cannot be found out: then the session stays. */
async function isValid(used: string): Promise<boolean> {
  try {
    await send('GET', 'auth/token/lookup-self', { token: used });
    return true;
  } catch (error) {
    return !(error instanceof ApiError && error.status === 403);
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

async function send(
  verb: Verb,
  path: string,
  { body, signal, token: used }: CallOptions & { readonly token?: string },
): Promise<Json> {
  const isList = verb === 'LIST';
  if (leavesItsPlace(path)) throw new ApiError(400, 'a name in a path must not be . or ..');
  const target = `/v1/${path}${isList ? `${path.includes('?') ? '&' : '?'}list=true` : ''}`;
  const timeout = AbortSignal.timeout(answerMs);
  let response: Response;
  let text: string;
  try {
    response = await fetch(target, {
      method: isList ? 'GET' : verb,
      headers: used === undefined ? {} : { 'X-Service-Token': used },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
    text = await response.text();
  } catch {
    throw new ApiError(0, 'this node does not answer');
  }
  const json = parsed(text);
  if (response.ok) return json;
  throw new ApiError(response.status, textsIn(json['errors']).join('; ') || `the node answered with status ${response.status}`);
}

function parsed(text: string): Json {
  try {
    return objectIn(JSON.parse(text));
  } catch {
    return {};
  }
}
