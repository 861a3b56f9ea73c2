import { type Quota, type Quotas, quotaMatches } from '@transitd/access';
import {
  any,
  bool,
  boolean,
  constant,
  dataReply,
  duration,
  type FieldSchema,
  invalidField,
  type JsonValue,
  list as listOf,
  number,
  object,
  RequestError,
  string,
  text,
  texts,
} from '@transitd/http';
import type { Services } from '@transitd/node';
import { printablePath } from '@transitd/transit-engine';
import { roleTypes } from '../auth/auth-methods.ts';
import * as answers from '../operation/answers.ts';
import { inert } from '../operation/inert-fields.ts';
import { memberSchemas, membersIn, propertiesIn, sorted } from '../operation/kept-fields.ts';
import { type Context, guarded, type Route } from '../operation/operation.ts';
import { PathForms } from '../operation/path-forms.ts';
import { recordOperations, recordRoutes } from '../operation/records.ts';
import { shown } from '../operation/shown.ts';
import { mountPathSpellings } from '../operation/spellings.ts';

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

const writeFields = { type: text('Type of the quota; the same as in the path'), ...quotaFields } as const;

const quotaJson = (quota: Quota): object =>
  sorted({ ...membersIn(quotaFields, quota), inheritable: quota.inheritable, name: quota.name, type: 'rate-limit' });

const quotaSchema = object(
  sorted({
    ...memberSchemas(quotaFields),
    ...{ group_by: constant('ip', 'token'), inheritable: boolean, name: string, rate: number, type: constant('rate-limit') },
  }),
);

const quotas = (forms: PathForms) =>
  recordOperations<Context, typeof writeFields>({
    noun: 'quota',
    name: 'Name of the quota',
    takes: writeFields,
    shown: quotaSchema,
    find: async ({ services }, name) => {
      const quota = await services.quotas.find(name);
      return quota && quotaJson(quota);
    },
    list: ({ services }) => services.quotas.list(),
    write: async ({ services }, name, values) => {
      const path =
        values.path === undefined ? undefined : await placeOf(services, forms.canonical(values.path.replace(/^\//, '')));
      const present = await services.quotas.find(name);
      if ((values.role ?? present?.role ?? '') !== '') await requireRoleLogins(services, path ?? present?.path ?? '');
      await services.quotas.write(name, {
        ...propertiesIn(quotaFields, values),
        path,
        rate: rateOf(values.rate),
        intervalS: values.interval === 0 ? undefined : values.interval,
        groupBy: groupOf(values.group_by),
        inheritable: values.inheritable,
      });
    },
    delete: ({ services }, name) => services.quotas.delete(name),
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
  if (Number.isNaN(rate)) throw invalidField('rate', 'expected a number');
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
  const counts = mounts.some(({ type, path: method }) => roleTypes.includes(type) && quotaMatches(path, `auth/${method}/login`));
  if (path !== '' && !counts)
    throw new RequestError(
      'invalid_request',
      `a quota for a role needs the path of a method of type ${roleTypes.join(' or ')}, such as auth/${roleTypes[0]}/`,
    );
}

const shownConfig = shown<Quotas['config']>({
  absolute_rate_limit_exempt_paths: [listOf(string), () => []],
  enable_rate_limit_audit_logging: [boolean, ({ auditLogging }) => auditLogging],
  enable_rate_limit_response_headers: [boolean, ({ responseHeaders }) => responseHeaders],
  rate_limit_exempt_paths: [listOf(string), ({ exemptPaths }) => exemptPaths],
});

const readConfig = guarded({
  name: 'quota-config-read',
  capability: 'read',
  about: 'Read the global quota settings',
  answers: answers.data(shownConfig.schema),
  run: ({ services }) => dataReply(shownConfig.json(services.quotas.config)),
});

const configFields = {
  enable_rate_limit_response_headers: bool('Return rate limit headers'),
  rate_limit_exempt_paths: texts('Paths exempt from rate limits', { dropsEmpty: true }),
  enable_rate_limit_audit_logging: inert('bool'),
};

const writeConfig = (forms: PathForms) =>
  guarded({
    name: 'quota-config-write',
    capability: 'update',
    about: 'Update the global quota settings; omitted fields keep their values',
    takes: configFields,
    answers: answers.written,
    run: ({ services }, { values }) =>
      services.quotas.configure({
        responseHeaders: values.enable_rate_limit_response_headers,
        auditLogging: values.enable_rate_limit_audit_logging,
        exemptPaths: values.rate_limit_exempt_paths?.map((path) => forms.canonical(path)),
      }),
  });

/** Routes of rate limit quotas. @param routes - returns all routes, which define the canonical forms of paths */
export function quotaRoutes(routes: () => readonly Route[]): readonly Route[] {
  const forms = new PathForms(routes);
  return [
    { path: 'sys/quotas/config', operations: { GET: readConfig, POST: writeConfig(forms) } },
    ...recordRoutes('sys/quotas/rate-limit', 'quota', quotas(forms)),
  ];
}
