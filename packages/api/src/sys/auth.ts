import { type AuthMount, type AuthTuning, authTypes, newAuthMount } from '@transitd/access';
import {
  any,
  duration,
  type Field,
  type FieldSchema,
  fields,
  lease,
  map,
  noContentReply,
  object,
  objectIn,
  type Reply,
  RequestError,
  string,
  text,
  textMap,
  topLevelDataReply,
  writtenReply,
} from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import * as answers from '../operation/answers.ts';
import { inert, inertIn, inertMembers, inertOfMount, unsupportedOfMount } from '../operation/inert-fields.ts';
import {
  type Call,
  type GuardedOperation,
  guarded,
  type OperationDescription,
  type Params,
  pathParam,
  type Route,
  type TypedCall,
} from '../operation/operation.ts';
import { configMembers, entryJson, mountMembers, optionsJson, optionsSchema } from './mount-json.ts';

const authMountOperation = <S extends FieldSchema = Record<never, never>>(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  description: OperationDescription<S>,
  run: (context: { readonly node: Node; readonly services: Services }, call: TypedCall<S>) => Promise<Reply>,
  { sudo = true, ...more }: Pick<GuardedOperation, 'sudo' | 'sameAs'> = {},
): GuardedOperation => guarded({ name, capability, sudo, ...more, ...description, run });

const pathIn = (call: Pick<Call, 'params'>): string => pathParam(call, 'method');
const method = text('Path of the auth method, below `auth/`', { required: true });

/** Returns an auth method in the form of the list. */
const mountJson = (mount: AuthMount) => entryJson(mount, { accessor: mount.accessor, config: configJson(mount) });

const configJson = ({ defaultTtlS, inert, maxTtlS }: Pick<AuthMount, 'defaultTtlS' | 'inert' | 'maxTtlS'>): object => ({
  default_lease_ttl: defaultTtlS,
  force_no_cache: false,
  max_lease_ttl: maxTtlS,
  token_type: 'default-service',
  ...inert,
});

const configSchema = object({ ...configMembers, token_type: string }, inertMembers(inertOfMount));
const mountSchema = object({ ...mountMembers, config: configSchema });

/** Returns the built-in `token` method; its TTLs are those of the node. */
function tokenMountJson({ member }: Node): object {
  const id = member?.clusterName?.id ?? '';
  const mount = { path: 'token', id, accessor: `auth_token_${id.slice(0, 8)}`, description: 'token based credentials' };
  return { ...mountJson({ ...newAuthMount, ...mount, type: 'userpass' }), type: 'token' };
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
  { about: 'List the auth methods', answers: answers.topLevelData(map(mountSchema)) },
  async ({ node, services }) => {
    const mounts = await services.logins.mounts.list();
    const rows = mounts.map((mount) => [`${mount.path}/`, mountJson(mount)] as const);
    return topLevelDataReply(Object.fromEntries([...rows, ['token/', tokenMountJson(node)]]));
  },
  { sudo: false },
);

const read = authMountOperation(
  'auth-read',
  'read',
  { about: 'Read an auth method', takes: { method }, answers: answers.topLevelData(mountSchema) },
  async (context, call) => {
    const found = await methodJson(context, pathIn(call));
    if (found === undefined) throw noMethod(pathIn(call));
    return topLevelDataReply(found);
  },
  { sameAs: ({ method }) => [`sys/auth/${method}`, `sys/mounts/auth/${method}`] },
);

/** Settings that are stored. @param time - makes the fields for TTLs, whose kind differs between the operations */
const tuning = <Time extends Field>(time: (about: string) => Time) => ({
  description: text('Description for operators'),
  default_lease_ttl: time('Default TTL of tokens of the method; 0 uses the default of the node'),
  max_lease_ttl: time('Maximum TTL of tokens of the method'),
});
/** Fields that clients send and that have no effect here. */
const unused = {
  ...inertOfMount,
  options: textMap('Stored and returned, but has no effect'),
  ...unsupportedOfMount,
} as const satisfies FieldSchema;
const configFields = { ...tuning(duration), ...unused };

const enable = authMountOperation(
  'auth-enable',
  'update',
  {
    about: 'Enable an auth method',
    takes: {
      method,
      type: text('Type of the auth method', { required: true, oneOf: authTypes }),
      description: text('Description for operators'),
      config: any('Settings of the auth method', { members: configFields }),
      local: inert('bool'),
      seal_wrap: inert('bool'),
      external_entropy_access: inert('bool'),
      ...unused,
    },
    answers: answers.written,
  },
  async ({ services }, { values, warnings, ...call }) => {
    const config = fields(configFields, objectIn('config', values.config));
    if (values.type === undefined || values.type === '')
      throw new RequestError('invalid_request', 'backend type must be specified as a string');
    await services.logins.mounts.enable(
      pathIn(call),
      values.type,
      {
        description: values.description,
        defaultTtlS: config.values.default_lease_ttl,
        maxTtlS: config.values.max_lease_ttl,
        options: values.options ?? config.values.options,
        inert: { ...inertIn(inertOfMount, values), ...inertIn(inertOfMount, config.values) },
      },
      {
        local: values.local === true,
        sealWrap: values.seal_wrap === true,
        externalEntropyAccess: values.external_entropy_access === true,
      },
    );
    return writtenReply([...warnings, ...config.warnings]);
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
  { about: 'Read the effective settings of an auth method', takes: { method }, answers: answers.topLevelData(tuningSchema) },
  async ({ services }, call) => {
    const path = pathIn(call);
    const { limits } = services.registry;
    const mount =
      path === 'token' ? { ...newAuthMount, description: 'token based credentials' } : await services.logins.mounts.find(path);
    if (mount === undefined) throw noMethod(path);
    // The effective values: for a TTL that is not set, the default of the node.
    const inForce = { ...mount, defaultTtlS: mount.defaultTtlS || limits.defaultTtlS, maxTtlS: mount.maxTtlS || limits.maxTtlS };
    return topLevelDataReply({ ...configJson(inForce), description: mount.description, options: optionsJson(mount) });
  },
  { sameAs: tuningPaths },
);

const tune = authMountOperation(
  'auth-tune',
  'update',
  {
    about: 'Update settings of an auth method; omitted fields keep their values',
    takes: { ...tuning(lease), ...unused, method },
    answers: answers.written,
  },
  async ({ services }, { values, warnings, ...call }) => {
    const path = pathIn(call);
    if (path === 'token') throw new RequestError('invalid_request', 'token TTLs are set in the configuration file of the node');
    const change: AuthTuning = {
      description: values.description,
      defaultTtlS: values.default_lease_ttl,
      maxTtlS: values.max_lease_ttl,
      options: values.options,
      inert: inertIn(inertOfMount, values),
    };
    if (!(await services.logins.mounts.tune(path, change))) throw noMethod(path);
    return writtenReply(warnings);
  },
  { sameAs: tuningPaths },
);

const disable = authMountOperation(
  'auth-disable',
  'delete',
  { about: 'Disable an auth method and revoke its tokens', takes: { method }, answers: answers.written },
  async ({ services }, call) => {
    await services.logins.mounts.disable(pathIn(call));
    return noContentReply;
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
