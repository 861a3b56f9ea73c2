import { type Field, type JsonSchema, object, schemaOf, string, type Verb } from '@transitd/http';
import { type Answers, type DeclaredAnswer, refusals, shared, sharedSchemas } from '../operation/answers.ts';
import type { Operation, OperationDescription, Route } from '../operation/operation.ts';
import { healthPath } from './health-document.ts';

/** A mount of an engine or an auth method. */
export interface Place {
  /** Path without a slash at either end. */
  readonly path: string;
  readonly type: string;
}

interface DocumentOptions {
  readonly routes: readonly Route[];
  readonly version: string;
  /** Engine mounts and auth methods to include. */
  readonly mounts: readonly Place[];
  readonly methods: readonly Place[];
  /** Returns whether to include the built-in routes. */
  shows(place: 'sys' | 'auth/token'): boolean;
}

/** One operation at one path in the document. */
interface Placed {
  /** `/transit/keys/{name}`. */
  readonly path: string;
  readonly params: readonly string[];
  readonly verb: Verb;
  readonly method: (typeof httpMethods)[number][1];
  readonly tag: string;
  readonly operation: Operation;
  readonly described: OperationDescription;
}

/** In the document a LIST is a GET with a query. LIST comes after GET, because it may share the entry of the GET. */
const httpMethods = [
  ['GET', 'get'],
  ['LIST', 'get'],
  ['POST', 'post'],
  ['DELETE', 'delete'],
] as const satisfies (readonly [Verb, string])[];

/**
 * Returns the OpenAPI 3.1 document of the routes as JSON, built from the declarations that also parse requests. An engine route appears
 * once for each mount, an auth method route once for each enabled method.
 * @param next - yields to the event loop when due: with 256 mounts the document has 35 MB and takes seconds
 */
export async function openApi(options: DocumentOptions, next: () => Promise<void> | undefined): Promise<string> {
  const paths = new Map<string, Record<string, object>>();
  if (options.shows('sys')) paths.set('/sys/health', healthPath);
  const ids = new Map<string, number>();
  for (const placed of placedOperations(options)) {
    await next();
    const item = paths.get(placed.path) ?? {};
    const there = item[placed.method];
    item[placed.method] = there === undefined ? operationObject(placed, idOf(placed, ids)) : { ...there, ...listVariant(placed) };
    paths.set(placed.path, item);
  }
  const tags = new Set<string>();
  const items: string[] = [];
  for (const [path, item] of paths) {
    await next();
    if (item !== healthPath) for (const tag of Object.values(item).flatMap(tagsOf)) tags.add(tag);
    items.push(`${JSON.stringify(path)}:${JSON.stringify(item)}`);
  }
  const head = {
    openapi: '3.1.1',
    info: { title: 'transitd', version: options.version, description },
    servers: [{ url: '/v1' }],
    tags: [...tags].map((name) => ({ name })),
  };
  const components = { schemas: sharedSchemas, responses: refusalResponses, securitySchemes };
  return `${JSON.stringify(head).slice(0, -1)},"paths":{${items.join()}},"components":${JSON.stringify(components)}}`;
}

const description = `Cryptography as a service with keys that are stored in the cluster.

Schemas describe the canonical form of each field. The server also accepts numbers and booleans as strings, durations as \`1h30m\`,
lists as comma-separated strings, and null for an omitted field; it warns about unknown fields. It may therefore accept requests that a
schema rejects. PUT is equivalent to POST, and \`LIST\` to \`GET\` with \`list=true\`. With \`X-Service-Wrap-TTL\`, a response with a body
is wrapped: \`data\` and \`auth\` are null, and \`wrap_info\` contains the wrapping token. Any request may fail with 408, 413, 414, 429,
431, 500 or 503.`;

const securitySchemes = {
  serviceToken: { type: 'apiKey', in: 'header', name: 'X-Service-Token' },
  vaultToken: { type: 'apiKey', in: 'header', name: 'X-Vault-Token' },
  bearer: { type: 'http', scheme: 'bearer' },
};
const anyToken = Object.keys(securitySchemes).map((name) => ({ [name]: [] }));

const refusalResponses = Object.fromEntries(
  Object.entries(refusals).map(([status, about]) => [
    `Refused${status}`,
    { description: about, content: { 'application/json': { schema: shared('Errors') } } },
  ]),
);

function* placedOperations({ routes, ...places }: DocumentOptions): Generator<Placed> {
  for (const route of routes) {
    for (const { path, tag, type } of placesOf(route, places)) {
      const params = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
      for (const [verb, method] of httpMethods) {
        const operation = route.operations[verb];
        if (operation === undefined) continue;
        const described = operation.byType === undefined ? describedIn(operation) : operation.byType[type];
        if (described !== undefined) yield { path: `/${path}`, params, verb, method, tag, operation, described };
      }
    }
  }
}

/** @throws Error for an operation without a description; a test checks all of them */
function describedIn({ name, about, answers, takes }: Operation): OperationDescription {
  if (about === undefined || answers === undefined) throw new Error(`the operation ${name} is not described`);
  return { about, answers, ...(takes && { takes }) };
}

/** Returns the paths of a route: one per mount, one per auth method, or its own path. */
function placesOf(
  { path }: Route,
  { mounts, methods, shows }: Pick<DocumentOptions, 'mounts' | 'methods' | 'shows'>,
): readonly { readonly path: string; readonly tag: string; readonly type: string }[] {
  const template = path.replaceAll(/[:*](\w+)/g, '{$1}');
  const at = (prefix: string, place: Place) => {
    const tag = prefix + place.path;
    return { path: template.replace(/^(?:auth\/)?\{\w+\}/, () => tag), tag, type: place.type };
  };
  if (path.startsWith(':mount/')) return mounts.map((mount) => at('', mount));
  if (path.startsWith('auth/*method/')) return methods.map((method) => at('auth/', method));
  const tag = path.startsWith('sys/') ? 'sys' : 'auth/token';
  return shows(tag) ? [{ path: template, tag, type: '' }] : [];
}

/** Returns a unique id such as `transit-keys-create`, numbered if it is already taken. */
function idOf({ tag, operation }: Placed, ids: Map<string, number>): string {
  const id = `${tag.replaceAll('/', '-')}-${operation.name}`;
  const count = (ids.get(id) ?? 0) + 1;
  ids.set(id, count);
  return count === 1 ? id : `${id}-${count}`;
}

function operationObject(placed: Placed, operationId: string): object {
  const { operation, described, tag } = placed;
  const isOpen = operation.access === 'open';
  return {
    operationId,
    summary: described.about,
    tags: [tag],
    parameters: parametersOf(placed),
    ...requestBodyOf(placed),
    responses: responsesOf(placed),
    security: isOpen ? [] : anyToken,
    ...(isOpen && { 'x-vault-unauthenticated': true }),
    ...(!isOpen && operation.sudo === true && { 'x-vault-sudo': true }),
  };
}

const isRead = (verb: Verb): boolean => verb === 'GET' || verb === 'LIST';
/** Returns whether the field comes from the query. */
const isInQuery = (verb: Verb, { condition }: Field): boolean => isRead(verb) || (verb === 'DELETE' && condition === true);

function parametersOf({ params, verb, described: { takes = {} } }: Placed): readonly object[] {
  const inPath = params.map((name) => parameter(name, 'path', Object.hasOwn(takes, name) ? takes[name] : undefined, true));
  const inQuery = Object.entries(takes)
    .filter(([name, field]) => !params.includes(name) && isInQuery(verb, field))
    .map(([name, field]) => parameter(name, 'query', field, field.required === true));
  return verb === 'LIST' ? [...inPath, listParameter(true), ...inQuery] : [...inPath, ...inQuery];
}

const listParameter = (required: boolean): object => ({
  name: 'list',
  in: 'query',
  required,
  description: 'Return the list of names',
  schema: { type: 'string', enum: required ? ['true'] : ['true', 'false'] },
});

const parameter = (name: string, place: 'path' | 'query', field: Field | undefined, required: boolean): object => {
  const { description, ...schema } = field === undefined ? { ...string, description: 'Path parameter' } : schemaOf(field);
  return { name, in: place, required, ...(description !== undefined && { description }), schema };
};

/** Returns the members that a LIST adds to the entry of the GET at the same path. */
const listVariant = (placed: Placed): object => ({
  parameters: [...parametersOf({ ...placed, verb: 'GET' }), listParameter(false)],
  description: `With \`list=true\`: ${placed.described.about}.`,
});

function requestBodyOf({ verb, params, operation, described: { takes = {} } }: Placed): object {
  if (isRead(verb)) return {};
  if ('streamsBody' in operation && operation.body !== undefined)
    return { requestBody: { required: true, content: { 'application/octet-stream': { schema: operation.body } } } };
  if (operation.body !== undefined) return { requestBody: jsonBody(operation.body, true) };
  const inBody = Object.entries(takes).filter(([name, field]) => !params.includes(name) && !isInQuery(verb, field));
  if (inBody.length === 0) return {};
  const schema = object({}, Object.fromEntries(inBody.map(([name, field]) => [name, schemaOf(field)])));
  const required = inBody.filter(([, field]) => field.required).map(([name]) => name);
  return { requestBody: jsonBody({ ...schema, ...(required.length > 0 && { required }) }, required.length > 0) };
}

const jsonBody = (schema: JsonSchema, required: boolean): object => ({ required, content: { 'application/json': { schema } } });

/** Error statuses that every operation can return; see `description`. */
const always = [400, 408, 413, 414, 429, 431, 500, 503];
const withToken = [403, 404, 412, 504];

function responsesOf({ verb, operation, described: { answers } }: Placed): object {
  const refused = operation.access === 'token' || operation.where !== undefined ? [...always, ...withToken] : always;
  const refusing = (verb === 'LIST' ? [...refused, 405] : refused).map(
    (status) => [status, { $ref: `#/components/responses/Refused${status}` }] as const,
  );
  return { ...Object.fromEntries(refusing), ...answered(answers) };
}

const answered = (answers: Answers): object =>
  Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, response(answer)]));

function response({ about, type, schema, other }: DeclaredAnswer): object {
  const contents = [{ type, schema }, ...(other ? [other] : [])].filter((each) => each.type !== undefined);
  return {
    description: about,
    ...(contents.length > 0 && { content: Object.fromEntries(contents.map((each) => [each.type, { schema: each.schema }])) }),
  };
}

const tagsOf = (operation: object): readonly string[] => ('tags' in operation ? (operation.tags as readonly string[]) : []);
