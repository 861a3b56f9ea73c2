import type { Principal } from '@transitd/access';
import { type JsonRules, parseJsonInSlices, runInSlices, type Steps, TaskLimit } from '@transitd/event-loop';
import { anything, bodyText, isStreamed, type JsonSchema, joined, Rendered, type Reply, type Verb } from '@transitd/http';
import type { PolicyRule, RefusedBy } from '@transitd/storage-fsm';
import type { HashText } from './audit-key.ts';
import { hashedData, hashedRequest } from './hashed-text.ts';
import { withoutTextsOf, withoutTokens } from './quoted-texts.ts';

/** `HELP` asks what a path is for, and does nothing. */
export type AuditedVerb = Verb | 'HELP';

/** A request as its entries record it, before anything is hashed. */
export interface AuditedRequest {
  readonly id: string;
  readonly verb: AuditedVerb;
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
  /** Undefined if no policies were asked so far. */
  readonly policyResults: PolicyResults | undefined;
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

/** The fields that both entries of one request have, hashed for one device. A long request is converted only once. */
export interface RequestFields {
  readonly auth: AuthFields;
  /** JSON text. */
  readonly request: string;
  /** JSON text. */
  readonly forwarded_from?: string;
}

/** The caller; without members if the request has no valid token. */
interface AuthFields {
  readonly shown: object;
  /** JSON text. */
  readonly metadata?: string;
  /** How the policies decided before the request entry, and all these fields as JSON text. Most response entries have the same. */
  readonly first: { readonly results: PolicyResults | undefined; readonly text: string };
}

/** How the policies of the caller decided. */
export interface PolicyResults {
  readonly allowed: boolean;
  /** The rules that decided; empty if no rule matches the path. */
  readonly rules: readonly PolicyRule[];
}

const operations: Readonly<Record<AuditedVerb, string>> = {
  GET: 'read',
  POST: 'update',
  DELETE: 'delete',
  LIST: 'list',
  HELP: 'help',
};

/** Makes the fields that both entries of a request have. */
export function* requestFields(audited: AuditedRequest, hash: HashText): Steps<RequestFields> {
  const { token, principal, mount, data, forwardedFrom } = audited;
  const accessor = principal?.record.accessor ?? '';
  const request = {
    id: audited.id,
    operation: operations[audited.verb],
    ...mountFields(mount),
    ...(token !== undefined && { client_token: hash(token) }),
    ...(accessor !== '' && { client_token_accessor: hash(accessor) }),
    namespace: { id: 'root', path: '' },
    path: withoutTokens(audited.path, hash),
    remote_address: audited.address,
    ...(audited.port !== undefined && { remote_port: audited.port }),
    ...(audited.wrapTtlS > 0 && { wrap_ttl: audited.wrapTtlS }),
  };
  const hasData = data !== undefined && Object.keys(data).length > 0;
  return {
    auth: principal === undefined || token === undefined ? nobody : yield* authOf(token, principal, audited.policyResults, hash),
    request: jsonObject(request, hasData ? { data: yield* hashedRequest(data, audited.schema, hash) } : {}),
    ...(forwardedFrom !== undefined && { forwarded_from: JSON.stringify(forwardedFrom) }),
  };
}

/** Returns the JSON text of an object. @param made - members whose values are JSON text already */
function jsonObject(members: object, made: object): string {
  const texts = [
    JSON.stringify(members).slice(1, -1),
    ...Object.entries(made).map(([name, text]) => `${JSON.stringify(name)}:${text}`),
  ].filter((text) => text !== '');
  return `{${texts.join(',')}}`;
}

const mountFields = ({ point, type, accessor, class: kind }: AuditedMount): object => ({
  mount_point: point,
  mount_type: type,
  ...(accessor !== undefined && { mount_accessor: accessor }),
  ...(kind !== undefined && { mount_class: kind }),
});

const nobody: AuthFields = { shown: {}, first: { results: undefined, text: '{}' } };

function* authOf(token: string, { record }: Principal, results: PolicyResults | undefined, hash: HashText): Steps<AuthFields> {
  const shown = {
    client_token: hash(token),
    ...(record.accessor !== '' && { accessor: hash(record.accessor) }),
    display_name: record.displayName,
    policies: record.policies,
    token_policies: record.policies,
    token_type: record.type,
    token_ttl: record.ttlS,
    token_issue_time: new Date(record.createdMs).toISOString(),
    ...(record.usesLeft > 0 && { num_uses: record.usesLeft }),
  };
  const fields = { shown, ...(Object.keys(record.meta).length > 0 && { metadata: yield* hashedData(record.meta, hash) }) };
  return { ...fields, first: { results, text: authJson(fields, results, hash) } };
}

function authJson(
  { shown, metadata }: Pick<AuthFields, 'shown' | 'metadata'>,
  results: PolicyResults | undefined,
  hash: HashText,
): string {
  const decided = results && { policy_results: policyResultsJson(results, hash) };
  return jsonObject(shown, { ...(metadata !== undefined && { metadata }), ...decided });
}

/** In the form of Vault, with the rules that decided. */
function policyResultsJson({ allowed, rules }: PolicyResults, hash: HashText): string {
  const granting = allowed ? [...new Set(rules.map(({ policy }) => policy))] : [];
  return JSON.stringify({
    allowed,
    granting_policies: granting.map((name) => ({ name, namespace_id: 'root', namespace_path: '', type: 'acl' })),
    rules: rules.map(({ policy, path }) => ({ policy, path: withoutTokens(path, hash) })),
  });
}

/** Returns the entry that is written before any work is done. @param time - RFC 3339 */
export const requestEntry = ({ auth, ...fields }: RequestFields, time: string): string =>
  jsonObject({ time, type: 'request' }, { auth: auth.first.text, ...fields });

export interface AuditedResponse extends Pick<AuditedRequest, 'data' | 'mount' | 'policyResults'> {
  readonly reply: Reply;
  /** RFC 3339. */
  readonly time: string;
  /** Its `data` is what a caller once sent, so the names in it may be secrets. */
  readonly repeatsData: boolean;
  /** What refused the request; undefined if nothing did, or if the error message says it. */
  readonly refusedBy: RefusedBy | undefined;
}

/** Longer texts take milliseconds to parse. */
const parsedAtOnceCharsMax = 64 * 1024;
/**
 * Long texts are parsed and recorded one after the other: their values take twenty times the memory of their text, and the responses of an
 * unwrap can have a million values, for which the request has reserved none.
 */
const longTexts = new TaskLimit(1);

/** Returns the entry that is written before the response is sent. */
export async function responseEntry(fields: RequestFields, response: AuditedResponse, hash: HashText): Promise<string> {
  const { reply } = response;
  if ('errors' in reply) return entryOf(fields, response, { errors: reply.errors }, hash);
  if ('json' in reply) return entryOf(fields, response, { data: reply.json }, hash);
  if (isStreamed(reply)) return entryOf(fields, response, {}, hash);
  if (!('envelope' in reply)) return parsedFirst(textOf(reply), (content) => entryOf(fields, response, membersOf(content), hash));
  const { data, ...members } = reply.envelope;
  if (!(data instanceof Rendered)) return entryOf(fields, response, { ...members, data }, hash);
  return parsedFirst(joined(data.json), (content) => entryOf(fields, response, { ...members, data: content }, hash));
}

async function entryOf(
  { auth, request, ...rest }: RequestFields,
  { reply, data, mount, time, repeatsData, policyResults, refusedBy }: AuditedResponse,
  content: Content,
  hash: HashText,
): Promise<string> {
  const { error, ...fields } = await runInSlices(replyFields(content, data, { hash, repeatsData }));
  const response = jsonObject({ status: reply.status, ...mountFields(mount) }, fields);
  const refusal = error !== undefined && { error, ...(refusedBy && { refused_by: refusedByJson(refusedBy, hash) }) };
  const { first } = auth;
  const caller = policyResults === first.results ? first.text : authJson(auth, policyResults, hash);
  return jsonObject({ time, type: 'response' }, { auth: caller, request, response, ...rest, ...refusal });
}

/** Values are hashed even if they are numbers: they are what a caller claims to be. */
const refusedByJson = ({ constraint, given }: RefusedBy, hash: HashText): string =>
  JSON.stringify({ constraint: withoutTokens(constraint, hash), given: given?.map(hash) });

/** The members of a response that are recorded. */
interface Content {
  readonly errors?: readonly unknown[];
  readonly data?: unknown;
  readonly auth?: unknown;
  readonly wrapInfo?: unknown;
}

/** The parts of a response that are recorded, as JSON text. */
interface ReplyFields {
  readonly error?: string;
  readonly data?: string;
  readonly auth?: string;
  readonly wrap_info?: string;
}

const rules: JsonRules = {
  depthMax: 128,
  valuesMax: Number.POSITIVE_INFINITY,
  membersMax: () => Number.POSITIVE_INFINITY,
  parse: JSON.parse,
  refusal: (reason) => new SyntaxError(reason),
};

/** Returns the content of an unwrapped or raw response; undefined if it is not JSON. */
const textOf = (reply: Reply): string | undefined =>
  reply.headers?.['Content-Type'] === undefined ? bodyText(reply) : undefined;

/** Passes on the value of a JSON text; undefined for any other text. Neither it nor the parser's error, which quotes it, is recorded. */
async function parsedFirst(text: string | undefined, use: (content: unknown) => Promise<string>): Promise<string> {
  if (text === undefined) return use(undefined);
  if (text.length <= parsedAtOnceCharsMax) return use(parsed(text));
  return longTexts.run(async () => use(await parseJsonInSlices(text, rules).catch(() => undefined)));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the members of a response that was encoded before. */
function membersOf(content: unknown): Content {
  const { errors, data, auth, wrap_info: wrapInfo } = Object(content) as Readonly<Record<string, unknown>>;
  if (Array.isArray(errors)) return { errors };
  return Object.hasOwn(Object(content), 'wrap_info') ? { data, auth, wrapInfo } : { data: content };
}

function* replyFields(
  { errors, data, auth, wrapInfo }: Content,
  requestData: object | undefined,
  { hash, repeatsData }: { readonly hash: HashText; readonly repeatsData: boolean },
): Steps<ReplyFields> {
  if (errors !== undefined) {
    const message = yield* withoutTextsOf(requestData, errors.join('; '), hash);
    return { error: JSON.stringify(withoutTokens(message, hash)) };
  }
  return {
    ...(data !== null &&
      data !== undefined && { data: yield* repeatsData ? hashedRequest(data, anything, hash) : hashedData(data, hash) }),
    ...(isObject(auth) && { auth: yield* authFields(auth, hash) }),
    ...(isObject(wrapInfo) && { wrap_info: yield* wrapInfoFields(wrapInfo, hash) }),
  };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null;

/** Makes the `auth` of a login or a new token: names and times in clear, everything else hashed. */
function* authFields(auth: Readonly<Record<string, unknown>>, hash: HashText): Steps<string> {
  const { display_name: displayName, policies, token_policies: tokenPolicies, token_type: type, ...rest } = auth;
  const shown = { display_name: displayName, policies, token_policies: tokenPolicies, token_type: type };
  return jsonObject(shown, yield* hashedEach(rest, hash));
}

function* wrapInfoFields(
  { creation_time: made, creation_path: path, ...rest }: Readonly<Record<string, unknown>>,
  hash: HashText,
): Steps<string> {
  const shown = { creation_time: made, creation_path: typeof path === 'string' ? withoutTokens(path, hash) : '' };
  return jsonObject(shown, yield* hashedEach(rest, hash));
}

/** Makes the JSON text of each member. */
function* hashedEach(members: Readonly<Record<string, unknown>>, hash: HashText): Steps<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(members)) texts[name] = yield* hashedData(value, hash);
  return texts;
}
