import type { Principal } from '@transitd/access';
import type { JsonSchema, Reply, Verb } from '@transitd/http';
import type { HashText } from './audit-key.ts';
import { hashedData, withoutTextsOf, withoutTokens } from './hashed-data.ts';
import { hashedRequest } from './hashed-request.ts';

/** A request as its entries show it, before anything is hashed. */
export interface AskedRequest {
  readonly id: string;
  readonly verb: Verb;
  readonly path: string;
  readonly mount: AuditedMount;
  readonly address: string;
  /** Undefined where it is another's than the caller's. */
  readonly port: number | undefined;
  readonly token: string | undefined;
  readonly principal: Principal | undefined;
  /** The members of the body or the query; undefined for none that were read. */
  readonly data: object | undefined;
  /** The members that the operation declares. */
  readonly reads: JsonSchema;
  readonly wrapTtlS: number;
  /** The node that took the request from its caller, when it was another. */
  readonly forwardedFrom: string | undefined;
}

export interface AuditedMount {
  /** With a slash at its end. */
  readonly point: string;
  readonly type: string;
}

/** What both entries of one request show of it, hashed for one sink. */
export interface ShownRequest {
  readonly auth: object;
  readonly request: object;
  readonly forwarded_from?: string;
}

const operations: Readonly<Record<Verb, string>> = { GET: 'read', POST: 'update', DELETE: 'delete', LIST: 'list' };

export function shownRequest(asked: AskedRequest, hash: HashText): ShownRequest {
  const { token, principal, mount, data } = asked;
  const accessor = principal?.record.accessor ?? '';
  return {
    auth: principal === undefined || token === undefined ? {} : shownPrincipal(token, principal, hash),
    request: {
      id: asked.id,
      operation: operations[asked.verb],
      mount_point: mount.point,
      mount_type: mount.type,
      ...(token !== undefined && { client_token: hash(token) }),
      ...(accessor !== '' && { client_token_accessor: hash(accessor) }),
      namespace: { id: 'root', path: '' },
      path: withoutTokens(asked.path, hash),
      ...(data !== undefined && Object.keys(data).length > 0 && { data: hashedRequest(data, asked.reads, hash) }),
      remote_address: asked.address,
      ...(asked.port !== undefined && { remote_port: asked.port }),
      ...(asked.wrapTtlS > 0 && { wrap_ttl: asked.wrapTtlS }),
    },
    ...(asked.forwardedFrom !== undefined && { forwarded_from: asked.forwardedFrom }),
  };
}

function shownPrincipal(token: string, { record }: Principal, hash: HashText): object {
  return {
    client_token: hash(token),
    ...(record.accessor !== '' && { accessor: hash(record.accessor) }),
    display_name: record.displayName,
    policies: record.policies,
    token_policies: record.policies,
    ...(Object.keys(record.meta).length > 0 && { metadata: hashedData(record.meta, hash) }),
    token_type: record.type,
    token_ttl: record.ttlS,
    token_issue_time: new Date(record.createdMs).toISOString(),
    ...(record.usesLeft > 0 && { num_uses: record.usesLeft }),
  };
}

/** The text of an entry that is written before any work. @param time - RFC 3339 */
export const requestEntry = ({ auth, request, ...rest }: ShownRequest, time: string): string =>
  JSON.stringify({ time, type: 'request', auth, request, ...rest });

export interface Answered extends Pick<AskedRequest, 'data' | 'mount'> {
  readonly reply: Reply;
  /** RFC 3339. */
  readonly time: string;
}

/** The text of an entry that is written before the answer leaves. */
export function responseEntry(
  { auth, request, ...rest }: ShownRequest,
  { reply, data, mount, time }: Answered,
  hash: HashText,
): string {
  const { error, ...response } = shownReply(reply, data, hash);
  const shown = { status: reply.status, mount_point: mount.point, mount_type: mount.type, ...response };
  return JSON.stringify({
    time,
    type: 'response',
    auth,
    request,
    response: shown,
    ...rest,
    ...(error !== undefined && { error }),
  });
}

interface ShownReply {
  readonly error?: string;
  readonly data?: unknown;
  readonly auth?: object;
  readonly wrap_info?: object;
}

function shownReply({ body, headers }: Reply, asked: object | undefined, hash: HashText): ShownReply {
  if (body === undefined || headers?.['Content-Type'] !== undefined) return {};
  const answer = readJson(body);
  const { errors, data, auth, wrap_info: wrapInfo } = Object(answer) as Readonly<Record<string, unknown>>;
  if (Array.isArray(errors)) return { error: withoutTokens(withoutTextsOf(asked, errors.join('; '), hash), hash) };
  const isEnveloped = Object.hasOwn(Object(answer), 'wrap_info');
  const shown = isEnveloped ? data : answer;
  return {
    ...(shown !== null && shown !== undefined && { data: hashedData(shown, hash) }),
    ...(isEnveloped && isObject(auth) && { auth: shownAuth(auth, hash) }),
    ...(isEnveloped && isObject(wrapInfo) && { wrap_info: shownWrapInfo(wrapInfo, hash) }),
  };
}

/** Nothing of an answer that is no JSON is shown. An error would repeat a part of it. */
function readJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null;

/** What a login or a new token was given: names and times in clear, all else hashed. */
function shownAuth(auth: Readonly<Record<string, unknown>>, hash: HashText): object {
  const { display_name: displayName, policies, token_policies: tokenPolicies, token_type: type, ...rest } = auth;
  return {
    ...(hashedData(rest, hash) as object),
    display_name: displayName,
    policies,
    token_policies: tokenPolicies,
    token_type: type,
  };
}

function shownWrapInfo(
  { creation_time: made, creation_path: path, ...rest }: Readonly<Record<string, unknown>>,
  hash: HashText,
): object {
  return {
    ...(hashedData(rest, hash) as object),
    creation_time: made,
    creation_path: typeof path === 'string' ? withoutTokens(path, hash) : '',
  };
}
