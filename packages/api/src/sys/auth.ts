import { type AuthMount, newAuthMount } from '@transitd/access';
import {
  any,
  type FieldSchema,
  fields,
  map,
  object,
  objectIn,
  pathText,
  RequestError,
  string,
  text,
  topLevelDataReply,
  writtenReply,
} from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import { authTypes } from '../auth/auth-methods.ts';
import * as answers from '../operation/answers.ts';
import { inert, inertIn, inertMembers, inertOfMount, unsupportedOfMount } from '../operation/inert-fields.ts';
import { membersIn, propertiesIn, sorted } from '../operation/kept-fields.ts';
import { type Context, operationsOn, type Params, type Route } from '../operation/operation.ts';
import {
  configMembers,
  entrySchema,
  inForce,
  optionsJson,
  optionsSchema,
  shownEntry,
  storedFields,
  ttlFields,
} from './mount-json.ts';

const authMountOperation = operationsOn((context: Context) => context, { sudo: true });

const method = pathText('Path of the auth method, below `auth/`');

/** Settings in the configuration of a method. @param kind - that of the TTLs, which differs between the operations */
const tuning = <Kind extends 'duration' | 'lease'>(kind: Kind) =>
  ttlFields(kind, 'Default TTL of tokens of the method; 0 uses the default of the node', 'Maximum TTL of tokens of the method');

/** Returns an auth method in the form of the list. */
const mountJson = (mount: AuthMount) => shownEntry.json({ ...mount, config: configJson(mount) });

const configJson = (mount: Pick<AuthMount, 'defaultTtlS' | 'inert' | 'maxTtlS'>): object => ({
  ...sorted({ ...membersIn(tuning('duration'), mount), force_no_cache: false, token_type: 'default-service' }),
  ...mount.inert,
});

const configSchema = object({ ...configMembers, token_type: string }, inertMembers(inertOfMount));
const mountSchema = entrySchema(configSchema);

/** Returns the built-in `token` method; its TTLs are those of the node. */
function tokenMountJson({ member }: Node): object {
  const id = member?.clusterName?.id ?? '';
  const mount = { path: 'token', type: 'token', id, accessor: `auth_token_${id.slice(0, 8)}` };
  return mountJson({ ...newAuthMount, ...mount, description: 'token based credentials' });
}

/** Returns the auth method at a path in the form of the list; undefined if nothing is enabled there. */
export async function methodJson(
  { node, services }: { readonly node: Node; readonly services: Services },
  path: string,
): Promise<object | undefined> {
  if (path === 'token') return tokenMountJson(node);
  const mount = await services.logins.mounts.find(path);
  return mount && mountJson(mount);
}

const list = authMountOperation(
  'auth-list',
  'read',
  { about: 'List the auth methods', answers: answers.topLevelData(map(mountSchema)), sudo: false },
  async ({ node, services }) => {
    const mounts = await services.logins.mounts.list();
    const rows = mounts.map((mount) => [`${mount.path}/`, mountJson(mount)] as const);
    return topLevelDataReply(Object.fromEntries([...rows, ['token/', tokenMountJson(node)]]));
  },
);

const read = authMountOperation(
  'auth-read',
  'read',
  {
    about: 'Read an auth method',
    takes: { method },
    answers: answers.topLevelData(mountSchema),
    sameAs: ({ method }) => [`sys/auth/${method}`, `sys/mounts/auth/${method}`],
  },
  async (context, { values: { method: path } }) => {
    const found = await methodJson(context, path);
    if (found === undefined) throw noMethod(path);
    return topLevelDataReply(found);
  },
);

/** Fields that clients send and that have no effect here. */
const unused = {
  ...inertOfMount,
  options: storedFields.options,
  ...unsupportedOfMount,
} as const satisfies FieldSchema;
const configFields = { description: storedFields.description, ...tuning('duration'), ...unused };

const enable = authMountOperation(
  'auth-enable',
  'update',
  {
    about: 'Enable an auth method',
    takes: {
      method,
      type: text('Type of the auth method', { required: true, oneOf: authTypes }),
      description: storedFields.description,
      config: any('Settings of the auth method', { members: configFields }),
      local: inert('bool'),
      seal_wrap: inert('bool'),
      external_entropy_access: inert('bool'),
      ...unused,
    },
    answers: answers.written,
  },
  async ({ services }, { values }) => {
    const config = fields(configFields, objectIn('config', values.config));
    if (values.type === undefined || values.type === '')
      throw new RequestError('invalid_request', 'backend type must be specified as a string');
    await services.logins.mounts.enable(
      values.method,
      values.type,
      {
        ...propertiesIn(tuning('duration'), config.values),
        description: values.description,
        options: values.options ?? config.values.options,
        inert: { ...inertIn(inertOfMount, values), ...inertIn(inertOfMount, config.values) },
      },
      {
        local: values.local === true,
        sealWrap: values.seal_wrap === true,
        externalEntropyAccess: values.external_entropy_access === true,
      },
    );
    return writtenReply(config.warnings);
  },
);

/** Clients of the peers tune an auth method below `sys/mounts/` too. */
const tuningPaths = ({ method }: Params): readonly string[] => [`sys/auth/${method}/tune`, `sys/mounts/auth/${method}/tune`];

const tuningSchema = object(
  { ...configMembers, token_type: string, description: string, options: optionsSchema },
  inertMembers(inertOfMount),
);

const readTuning = authMountOperation(
  'auth-tune-read',
  'read',
  {
    about: 'Read the effective settings of an auth method',
    takes: { method },
    answers: answers.topLevelData(tuningSchema),
    sameAs: tuningPaths,
  },
  async ({ services }, { values: { method: path } }) => {
    const mount =
      path === 'token' ? { ...newAuthMount, description: 'token based credentials' } : await services.logins.mounts.find(path);
    if (mount === undefined) throw noMethod(path);
    const config = configJson(inForce(mount, services.registry.limits));
    return topLevelDataReply({ ...config, description: mount.description, options: optionsJson(mount) });
  },
);

const tuneFields = { description: storedFields.description, ...tuning('lease'), ...unused };

const tune = authMountOperation(
  'auth-tune',
  'update',
  {
    about: 'Update settings of an auth method; omitted fields keep their values',
    takes: { ...tuneFields, method },
    answers: answers.written,
    sameAs: tuningPaths,
  },
  async ({ services }, { values }) => {
    const { method: path } = values;
    if (path === 'token') throw new RequestError('invalid_request', 'token TTLs are set in the configuration file of the node');
    const change = { ...propertiesIn(tuneFields, values), inert: inertIn(inertOfMount, values) };
    if (!(await services.logins.mounts.tune(path, change))) throw noMethod(path);
  },
);

const disable = authMountOperation(
  'auth-disable',
  'delete',
  { about: 'Disable an auth method and revoke its tokens', takes: { method }, answers: answers.written },
  async ({ services }, { values }) => {
    await services.logins.mounts.disable(values.method);
  },
);

const noMethod = (path: string): RequestError => new RequestError('invalid_request', `No auth engine at ${path}/`);

/** Routes of auth methods. */
export const authRoutes: readonly Route[] = [
  { path: 'sys/auth', operations: { GET: list } },
  { path: 'sys/auth/*method/tune', operations: { GET: readTuning, POST: tune } },
  { path: 'sys/auth/*method', operations: { GET: read, POST: enable, DELETE: disable } },
  { path: 'sys/mounts/auth/*method/tune', operations: { GET: readTuning, POST: tune } },
  // The Go client and Terraform read a method here. As in Vault, this path needs no `sudo`.
  { path: 'sys/mounts/auth/*method', operations: { GET: { ...read, sudo: false } } },
];
