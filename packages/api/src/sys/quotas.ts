import { type Quota, quotaMatches } from '@transitd/access';
import {
  any,
  bool,
  boolean,
  constant,
  dataReply,
  duration,
  type FieldSchema,
  type JsonValue,
  list as listOf,
  noContentReply,
  number,
  object,
  type Reply,
  RequestError,
  string,
  text,
  texts,
  writtenReply,
} from '@transitd/http';
import type { Services } from '@transitd/node';
import { printablePath } from '@transitd/transit-engine';
import * as answers from '../operation/answers.ts';
import { inert } from '../operation/inert-fields.ts';
import { memberSchemas, membersIn, propertiesIn, sorted } from '../operation/kept-fields.ts';
import {
  type Call,
  found,
  type GuardedOperation,
  guarded,
  namesReply,
  type OperationDescription,
  pathParam,
  type Route,
  type TypedCall,
} from '../operation/operation.ts';
import { PathForms } from '../operation/path-forms.ts';
import { mountPathSpellings } from '../operation/spellings.ts';

const quotaOperation = <S extends FieldSchema = Record<never, never>>(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  description: OperationDescription<S>,
  run: (services: Services, call: TypedCall<S>) => Promise<Reply>,
): GuardedOperation => guarded({ name, capability, ...description, run: ({ services }, call) => run(services, call) });

const nameIn = (call: Pick<Call, 'params'>): string => pathParam(call, 'name');
const name = text('Name of the quota', { required: true });

/** Fields of a quota; its type is always the same. */
const quotaFields = {
  path: text('Mount to limit, or a path below a mount; empty for all requests', { spellings: mountPathSpellings }),
  role: text('Role whose logins are limited; other logins are not limited'),
  rate: any('Maximum number of requests per interval; above 0', { shape: { type: 'number', minimum: 1 } }),
  interval: duration('Interval of the limit; 0 means one second'),
  block_interval: duration('How long a client that exceeds the limit is blocked'),
  inheritable: inert('bool', { default: true }),
  group_by: text('Apply the limit per client address or per token', { oneOf: ['ip', 'token'], default: 'ip' }),
} as const satisfies FieldSchema;

const quotaJson = (quota: Quota): object =>
  sorted({ ...membersIn(quotaFields, quota), inheritable: quota.inheritable, name: quota.name, type: 'rate-limit' });

const quotaSchema = object(
  sorted({
    ...memberSchemas(quotaFields),
    ...{ group_by: constant('ip', 'token'), inheritable: boolean, name: string, rate: number, type: constant('rate-limit') },
  }),
);

const read = quotaOperation(
  'quota-read',
  'read',
  { about: 'Read a quota', takes: { name }, answers: answers.data(quotaSchema) },
  async ({ quotas }, call) => dataReply(quotaJson(found(await quotas.find(nameIn(call))))),
);

const list = quotaOperation('quota-list', 'list', { about: 'List quota names', answers: answers.names }, async ({ quotas }) =>
  namesReply(await quotas.list()),
);

const description = {
  about: 'Create a quota, or update the given fields of an existing one',
  takes: { name, type: text('Type of the quota; the same as in the path'), ...quotaFields },
  answers: answers.written,
};

const write = (forms: PathForms) =>
  quotaOperation('quota-write', 'update', description, async (services, { values, warnings, ...call }) => {
    const path = values.path === undefined ? undefined : await placeOf(services, forms.canonical(values.path.replace(/^\//, '')));
    const present = await services.quotas.find(nameIn(call));
    if ((values.role ?? present?.role ?? '') !== '') await requireRoleLogins(services, path ?? present?.path ?? '');
    await services.quotas.write(nameIn(call), {
      ...propertiesIn(quotaFields, values),
      path,
      rate: rateOf(values.rate),
      intervalS: values.interval === 0 ? undefined : values.interval,
      groupBy: groupOf(values.group_by),
      inheritable: values.inheritable,
    });
    return writtenReply(warnings);
  });

function groupOf(value: string | undefined): Quota['groupBy'] | undefined {
  if (value === undefined || value === '') return undefined;
  if (value === 'ip' || value === 'token') return value;
  throw new RequestError('invalid_request', "'group_by' must be ip or token");
}

function rateOf(value: JsonValue | undefined): number | undefined {
  if (value === undefined || value === null) return undefined;
  const rate =
    typeof value === 'number' ? value : typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isNaN(rate))
    throw new RequestError(
      'invalid_field',
      'Field validation failed: error converting input for field "rate": expected a number',
    );
  return rate;
}

/**
 * Returns the path as requests are compared with it. The path of a mount gets the slash at its end without which no request matches it.
 * Refuses a path that no mount serves, because the quota would have no effect.
 */
async function placeOf({ mounts, logins }: Services, path: string): Promise<string> {
  if (path === '') return path;
  const below = path.endsWith('/') ? path : `${path}/`;
  const methods = (await logins.mounts.list()).map((method) => `auth/${method.path}/`);
  const served = ['sys/', 'auth/token/', ...methods, ...mounts.list.map((mount) => `${mount.path}/`)];
  if (served.includes(below)) return below;
  if (served.some((mount) => below.startsWith(mount))) return path;
  throw new RequestError('invalid_request', `invalid mount path: nothing is mounted at "${printablePath(path)}"`);
}

/** Refuses a quota for a role if its path matches no login with a role, because the quota would have no effect. */
async function requireRoleLogins({ logins }: Services, path: string): Promise<void> {
  const mounts = await logins.mounts.list();
  const counts = mounts.some(({ type, path: method }) => type !== 'userpass' && quotaMatches(path, `auth/${method}/login`));
  if (path !== '' && !counts)
    throw new RequestError(
      'invalid_request',
      'a quota for a role needs the path of an approle or jwt method, such as auth/approle/',
    );
}

const remove = quotaOperation(
  'quota-delete',
  'delete',
  { about: 'Delete a quota', takes: { name }, answers: answers.written },
  async ({ quotas }, call) => {
    await quotas.delete(nameIn(call));
    return noContentReply;
  },
);

const configSchema = object({
  absolute_rate_limit_exempt_paths: listOf(string),
  enable_rate_limit_audit_logging: boolean,
  enable_rate_limit_response_headers: boolean,
  rate_limit_exempt_paths: listOf(string),
});

const readConfig = quotaOperation(
  'quota-config-read',
  'read',
  { about: 'Read the global quota settings', answers: answers.data(configSchema) },
  async ({ quotas }) => {
    const { responseHeaders, exemptPaths, auditLogging } = quotas.config;
    const data = {
      absolute_rate_limit_exempt_paths: [],
      enable_rate_limit_audit_logging: auditLogging,
      enable_rate_limit_response_headers: responseHeaders,
      rate_limit_exempt_paths: exemptPaths,
    };
    return dataReply(data);
  },
);

const configFields = {
  enable_rate_limit_response_headers: bool('Return rate limit headers'),
  rate_limit_exempt_paths: texts('Paths exempt from rate limits', { dropsEmpty: true }),
  enable_rate_limit_audit_logging: inert('bool'),
};

const writeConfig = (forms: PathForms) =>
  quotaOperation(
    'quota-config-write',
    'update',
    {
      about: 'Update the global quota settings; omitted fields keep their values',
      takes: configFields,
      answers: answers.written,
    },
    async ({ quotas }, { values, warnings }) => {
      await quotas.configure({
        responseHeaders: values.enable_rate_limit_response_headers,
        auditLogging: values.enable_rate_limit_audit_logging,
        exemptPaths: values.rate_limit_exempt_paths?.map((path) => forms.canonical(path)),
      });
      return writtenReply(warnings);
    },
  );

/** Routes of rate limit quotas. @param routes - returns all routes, which define the canonical forms of paths */
export function quotaRoutes(routes: () => readonly Route[]): readonly Route[] {
  const forms = new PathForms(routes);
  return [
    { path: 'sys/quotas/config', operations: { GET: readConfig, POST: writeConfig(forms) } },
    { path: 'sys/quotas/rate-limit', operations: { LIST: list } },
    { path: 'sys/quotas/rate-limit/:name', operations: { GET: read, POST: write(forms), DELETE: remove } },
  ];
}
