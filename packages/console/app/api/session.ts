import { type Json, objectIn, textIn, textsIn } from './json.ts';
import { linesOf } from './lines.ts';
import { ApiError, type CallOptions, open, parsed, segments, send, type Verb } from './request.ts';

/** The caller behind the token. */
export interface Caller {
  readonly name: string;
  readonly policies: readonly string[];
  readonly details: Json;
}

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
export async function signIn(given: string): Promise<void> {
  begin(given, await lookUp(given));
  isOwn = false;
}

/** Signs in with a name and a password. @param method - path of the auth method. @throws ApiError */
export async function signInByPassword(method: string, name: string, password: string): Promise<void> {
  const path = `auth/${segments(method)}/login/${encodeURIComponent(name)}`;
  const { auth } = await send('POST', path, { body: { password } });
  await signIn(textIn(objectIn(auth)['client_token']));
  isOwn = true;
}

/**
 * Signs in with a JWT of an identity provider.
 * @param method - path of the auth method @param role - empty for the default role of the method
 * @throws ApiError
 */
export async function signInByJwt(method: string, role: string, jwt: string): Promise<void> {
  const { auth } = await send('POST', `auth/${segments(method)}/login`, { body: { jwt, ...(role !== '' && { role }) } });
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
export const call = (verb: Verb, path: string, options: CallOptions = {}): Promise<Json> =>
  withToken((used) => send(verb, path, { ...options, token: used }));

/** A node sends a line each second; a view of the cluster takes it at most one more. */
const silenceMs = 5000;

/**
 * Reads a stream of lines with the token of this session, until the node ends it. The node ends it when the token loses its rights.
 * @throws ApiError if the stream is refused or breaks, or if no line arrives for five seconds
 */
export async function follow(path: string, onLine: (data: Json) => void, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => over.abort(), silenceMs);
  };
  heard();
  try {
    const until = AbortSignal.any([signal, over.signal]);
    const { body } = await withToken((used) => open('GET', `${path}?follow=true`, { token: used, signal: until }));
    await linesOf(body, (line) => {
      heard();
      onLine(parsed(line));
    });
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}

async function withToken<T>(ask: (used: string) => Promise<T>): Promise<T> {
  const used = token;
  if (used === undefined) throw new ApiError(403, 'you are signed out');
  try {
    return await ask(used);
  } catch (error) {
    if (isRefusal(error) && !(await isValid(used)) && used === token)
      signOut('Your token is no longer valid. It has expired or was revoked.');
    throw error;
  }
}

/** Reads what a node tells everybody, also before anyone signs in. @throws ApiError */
export const readPublic = (path: string, signal: AbortSignal): Promise<Json> => send('GET', path, { signal });

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

/**
 * Returns what the node knows of a token; nothing if the token may not look itself up, but may read the cluster: the token of an auditor
 * does not need the policy `default`.
 * @throws ApiError
 */
async function lookUp(given: string): Promise<Json> {
  try {
    return objectIn((await send('GET', 'auth/token/lookup-self', { token: given }))['data']);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    await send('GET', 'sys/nodes', { token: given });
    return {};
  }
}

const isRefusal = (error: unknown): boolean => error instanceof ApiError && error.status === 403;

/** Whether the token is valid. True as well if that cannot be found out: then the session stays. */
async function isValid(used: string): Promise<boolean> {
  try {
    await lookUp(used);
    return true;
  } catch (error) {
    return !isRefusal(error);
  }
}
