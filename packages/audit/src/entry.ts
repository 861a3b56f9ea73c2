import type { Principal } from '@transitd/access';
import { bodyText, type JsonSchema, type Reply, type Verb } from '@transitd/http';
import type { HashText } from './audit-key.ts';
import { hashedData, withoutTextsOf, withoutTokens } from './hashed-data.ts';
import { hashedRequest } from './hashed-request.ts';

/** A request as its entries record it, before anything is hashed. */
export interface AuditedRequest {
  readonly id: string;
  readonly verb: Verb;
  readonly path: string;
  readonly mount: AuditedMount;
  readonly address: string;
  /** The caller's port; undefined when the connection is a proxy's or another node's. */
  readonly port: number | undefined;
  readonly token: string | undefined;
  readonly principal: Principal | undefined;
  /** The members of the body or the query; undefined when none were read. */
  readonly data: object | undefined;
  /** Schema that declares the members of the request. */
  readonly schema: JsonSchema;
  readonly wrapTtlS: number;
  /** The node that forwarded the request; undefined when the caller sent it to this node. */
  readonly forwardedFrom: string | undefined;
}

export interface AuditedMount {
  /** Ends with a slash. */
  readonly point: string;
  readonly type: string;
  readonly class?: 'auth' | 'secret';
  /** Absent for `sys/` and `auth/token/`, which cannot be replaced by another mount. */
  readonly accessor?: string;
}

/** The fields that both entries of one request have, hashed for one device. */
export interface RequestFields {
  readonly auth: object;
  readonly request: object;
  readonly forwarded_from?: string;
}

const operations: Readonly<Record<Verb, string>> = { GET: 'read', POST: 'update', DELETE: 'delete', LIST: 'list' };

/** Returns the fields that both entries of a request have. */
export function requestFields(audited: AuditedRequest, hash: HashText): RequestFields {
  const { token, principal, mount, data } = audited;
  const accessor = principal?.record.accessor ?? '';
  return {
    auth: principal === undefined || token === undefined ? {} : principalFields(token, principal, hash),
    request: {
      id: audited.id,
      operation: operations[audited.verb],
      ...mountFields(mount),
      ...(token !== undefined && { client_token: hash(token) }),
      ...(accessor !== '' && { client_token_accessor: hash(accessor) }),
      namespace: { id: 'root', path: '' },
      path: withoutTokens(audited.path, hash),
      ...(data !== undefined && Object.keys(data).length > 0 && { data: hashedRequest(data, audited.schema, hash) }),
      remote_address: audited.address,
      ...(audited.port !== undefined && { remote_port: audited.port }),
      ...(audited.wrapTtlS > 0 && { wrap_ttl: audited.wrapTtlS }),
    },
    ...(audited.forwardedFrom !== undefined && { forwarded_from: audited.forwardedFrom }),
  };
}

const mountFields = ({ point, type, accessor, class: kind }: AuditedMount): object => ({
  mount_point: point,
  mount_type: type,
  ...(accessor !== undefined && { mount_accessor: accessor }),
  ...(kind !== undefined && { mount_class: kind }),
});

function principalFields(token: string, { record }: Principal, hash: HashText): object {
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

/** Returns the entry that is written before any work is done. @param time - RFC 3339 */
export const requestEntry = ({ auth, request, ...rest }: RequestFields, time: string): string =>
  JSON.stringify({ time, type: 'request', auth, request, ...rest });

export interface AuditedResponse extends Pick<AuditedRequest, 'data' | 'mount'> {
  readonly reply: Reply;
  /** RFC 3339. */
  readonly time: string;
}

/** Returns the entry that is written before the response is sent. */
export function responseEntry(
  { auth, request, ...rest }: RequestFields,
  { reply, data, mount, time }: AuditedResponse,
  hash: HashText,
): string {
  const { error, ...content } = replyFields(reply, data, hash);
  const response = { status: reply.status, ...mountFields(mount), ...content };
  return JSON.stringify({
    time,
    type: 'response',
    auth,
    request,
    response,
    ...rest,
    ...(error !== undefined && { error }),
  });
}

interface ReplyFields {
  readonly error?: string;
  readonly data?: unknown;
  readonly auth?: object;
  readonly wrap_info?: object;
}

/** A body is not recorded if a part of it is read only while it is sent. */
function replyFields(reply: Reply, requestData: object | undefined, hash: HashText): ReplyFields {
  const { headers, stream } = reply;
  const body = stream === undefined ? bodyText(reply) : undefined;
  if (body === undefined || headers?.['Content-Type'] !== undefined) return {};
  const content = readJson(body);
  const { errors, data, auth, wrap_info: wrapInfo } = Object(content) as Readonly<Record<string, unknown>>;
  if (Array.isArray(errors)) return { error: withoutTokens(withoutTextsOf(requestData, errors.join('; '), hash), hash) };
  const isEnveloped = Object.hasOwn(Object(content), 'wrap_info');
  const result = isEnveloped ? data : content;
  return {
    ...(result !== null && result !== undefined && { data: hashedData(result, hash) }),
    ...(isEnveloped && isObject(auth) && { auth: authFields(auth, hash) }),
    ...(isEnveloped && isObject(wrapInfo) && { wrap_info: wrapInfoFields(wrapInfo, hash) }),
  };
}

/** Returns undefined for a body that is not JSON. Neither this body nor the parser's error, which quotes it, is recorded. */
function readJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null;

/** Returns the `auth` of a login or a new token: names and times in clear, everything else hashed. */
function authFields(auth: Readonly<Record<string, unknown>>, hash: HashText): object {
  const { display_name: displayName, policies, token_policies: tokenPolicies, token_type: type, ...rest } = auth;
  return {
    ...(hashedData(rest, hash) as object),
    display_name: displayName,
    policies,
    token_policies: tokenPolicies,
    token_type: type,
  };
}

function wrapInfoFields(
  { creation_time: made, creation_path: path, ...rest }: Readonly<Record<string, unknown>>,
  hash: HashText,
): object {
  return {
    ...(hashedData(rest, hash) as object),
    creation_time: made,
    creation_path: typeof path === 'string' ? withoutTokens(path, hash) : '',
  };
}
