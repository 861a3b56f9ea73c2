import { allows, type Capability, type NamedRule, type Principal, rulesOf } from '@transitd/access';
import { accessTurns, TimeSlice } from '@transitd/event-loop';
import {
  boolean,
  dataReply,
  integer,
  list,
  map,
  nothing,
  object,
  orNull,
  permissionDenied,
  string,
  unavailable,
} from '@transitd/http';
import type { Mount, Services } from '@transitd/node';
import * as answers from '../operation/answers.ts';
import { type Call, type Context, type GuardedOperation, guarded, open, type Route } from '../operation/operation.ts';
import { isOrdinary } from '../operation/rights.ts';
import { methodJson } from './auth.ts';
import { configMembers, entrySchema, optionsJson, ownConfigMembers } from './mount-json.ts';
import { mountJson, systemJson } from './mounts.ts';

const capabilities: readonly Capability[] = ['create', 'read', 'update', 'patch', 'delete', 'list', 'sudo'];

/** Paths and prefixes of patterns on which the policies grant any capability; computed once for each ACL. */
const granted = new WeakMap<Principal['acl'], { readonly exact: readonly string[]; readonly fixed: readonly string[] }>();

function grantedTo(principal: Principal): { readonly exact: readonly string[]; readonly fixed: readonly string[] } {
  const known = granted.get(principal.acl);
  if (known !== undefined) return known;
  const { exact, glob } = rulesOf(principal);
  const grants = ({ capabilities: [first] }: NamedRule): boolean => first !== 'deny';
  const made = {
    exact: exact.filter(grants).map(({ path }) => path),
    // The part of the pattern before its first wildcard. A path may match the pattern, or have a match below it, only if one of the two is
    // a prefix of the other.
    fixed: glob.filter(grants).map(({ path }) => path.split('+', 1)[0] ?? ''),
  };
  granted.set(principal.acl, made);
  return made;
}

/** Returns whether a token has any capability on the path or below it. */
export function maySee(principal: Principal, path: string): boolean {
  if (principal.root) return true;
  const { exact, fixed } = grantedTo(principal);
  return (
    exact.some((each) => each.startsWith(path)) ||
    fixed.some((text) => text.startsWith(path) || path.startsWith(text)) ||
    capabilities.some((capability) => allows(principal, capability, path))
  );
}

/** Returns the mounts that the caller may see. Works in time slices, since each mount is compared with all rules. */
export async function seenOf<T>(
  principal: Principal | undefined,
  places: readonly T[],
  pathOf: (place: T) => string,
): Promise<T[]> {
  const seen: T[] = [];
  const slice = new TimeSlice(accessTurns);
  for (const place of principal === undefined ? [] : places) {
    if (slice.isOver) await slice.next();
    if (principal !== undefined && maySee(principal, pathOf(place))) seen.push(place);
  }
  return seen;
}

/** Returns the caller if its token is valid here and has unlimited uses; otherwise undefined, so that the caller sees no mounts. */
export async function asker(
  { tokens }: Services,
  origin: Pick<Call, 'address' | 'certificate'>,
  token: string | undefined,
): Promise<Principal | undefined> {
  const principal = token === undefined ? undefined : await tokens.authenticate(token);
  return principal !== undefined && isOrdinary(principal, origin, tokens.nowMs) ? principal : undefined;
}

const uiJson = (mount: Mount): object => ({ type: mount.type, description: mount.description, options: optionsJson(mount) });

/**
 * Lists the mounts on which the caller has any capability. Without a token the list is empty and not an error, because clients send this
 * request before a login.
 */
const uiMounts = open({
  name: 'ui-mounts',
  about: 'List the mounts on which the caller has any capability',
  answers: answers.data(
    object({
      auth: map(object({ type: string, description: string, options: nothing })),
      secret: map(object({ type: string, description: string, options: orNull(map(string)) })),
    }),
  ),
  where: 'replica',
  run: async (node, call, token) => {
    const { services } = node;
    if (services === undefined) throw unavailable(node);
    const principal = await asker(services, call, token);
    const secret = await seenOf(principal, services.mounts.list, ({ path }) => `${path}/`);
    const auth = await seenOf(principal, await services.logins.mounts.list(), ({ path }) => `auth/${path}/`);
    return dataReply({
      auth: Object.fromEntries(auth.map(({ path, type, description }) => [`${path}/`, { type, description, options: null }])),
      secret: Object.fromEntries(secret.map((mount) => [`${mount.path}/`, uiJson(mount)])),
    });
  },
});

const prefix = 'sys/internal/ui/mounts/';

/** Reads the mount of a path. Clients send this request before they read or write below the path. */
const uiMount = guarded({
  name: 'ui-mount',
  about: 'Read the mount that serves a path',
  answers: answers.data(entrySchema(object(configMembers, { ...ownConfigMembers, token_type: string }), { path: string })),
  anyRights: true,
  run: async (context, call) => {
    const requestedPath = call.path.slice(prefix.length);
    const serving = await mountServing(context, requestedPath);
    // The response is the same for a missing mount and for a forbidden mount.
    if (serving === undefined || !(maySee(context.principal, serving.path) || maySee(context.principal, requestedPath)))
      throw permissionDenied({ constraint: 'capabilities' });
    return dataReply({ ...serving.json, path: serving.path });
  },
});

/** Returns the mount or auth method that serves a path, in the form of the list. @throws StoreError */
async function mountServing(
  context: Pick<Context, 'node' | 'services'>,
  requested: string,
): Promise<{ readonly path: string; readonly json: object } | undefined> {
  const [first = ''] = requested.split('/', 1);
  if (first === 'sys') return { path: 'sys/', json: systemJson(context.node) };
  if (first === 'auth') {
    const below = requested.slice('auth/'.length);
    const path = /^token(?:\/|$)/.test(below) ? 'token' : (await context.services.logins.mounts.serving(below))?.path;
    const json = path === undefined ? undefined : await methodJson(context, path);
    return json && { path: `auth/${path}/`, json };
  }
  const mount = context.services.mounts.list.find(({ path }) => `${requested}/`.startsWith(`${path}/`));
  return mount && { path: `${mount.path}/`, json: mountJson(mount) };
}

const rulesSchema = map(object({ capabilities: list(string) }));

const resultantAcl = guarded({
  name: 'resultant-acl',
  about: "Read the effective rules of the caller's policies",
  answers: answers.data(object({ root: boolean, exact_paths: rulesSchema, glob_paths: rulesSchema })),
  capability: 'read',
  run: ({ principal }) => {
    const rows = (rules: readonly { readonly path: string; readonly capabilities: readonly string[] }[]): object =>
      Object.fromEntries(rules.map((rule) => [rule.path, { capabilities: rule.capabilities }]));
    const { exact, glob } = rulesOf(principal);
    return dataReply({ root: principal.root, exact_paths: rows(exact), glob_paths: rows(glob) });
  },
});

const counters = (name: string, counted: string, count: (context: Context) => Promise<object>): GuardedOperation =>
  guarded({
    name,
    about: `Count \`${counted}\``,
    answers: answers.data(object({ counters: object({ [counted]: object({ total: integer }) }) })),
    capability: 'read',
    sudo: true,
    run: async (context) => dataReply({ counters: await count(context) }),
  });

const tokenCount = counters('counters-tokens', 'service_tokens', async ({ services }) => ({
  service_tokens: { total: (await services.registry.accessors()).length },
}));
const entityCount = counters('counters-entities', 'entities', async () => ({ entities: { total: 0 } }));

/** Routes for user interfaces and command-line clients. */
export const internalRoutes: readonly Route[] = [
  { path: 'sys/internal/ui/mounts', operations: { GET: uiMounts } },
  { path: `${prefix}*path`, operations: { GET: uiMount } },
  { path: 'sys/internal/ui/resultant-acl', operations: { GET: resultantAcl } },
  { path: 'sys/internal/counters/tokens', operations: { GET: tokenCount } },
  { path: 'sys/internal/counters/entities', operations: { GET: entityCount } },
];
