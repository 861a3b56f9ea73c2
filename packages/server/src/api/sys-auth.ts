import type { AuthMount, AuthTuning } from '@transitd/access';
import { dataReply, noContent, twiceReply, writtenReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { type FieldSchema, fields } from '../http/fields.ts';
import type { JsonValue } from '../http/json.ts';
import type { Reply } from '../http/reply.ts';
import type { Node } from '../node/node.ts';
import type { Service } from '../node/service.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

function operation(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  run: (context: { readonly node: Node; readonly service: Service }, call: Call) => Promise<Reply>,
  { sudo = true, ...cluster }: Pick<GuardedOperation, 'sudo' | 'adds'> = {},
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    sudo,
    ...cluster,
    run: async (context, call) => {
      return run(context, call);
    },
  };
}

const pathIn = ({ params }: Call): string => params['method'] ?? '';

/** A method as its list shows it. */
const mountJson = (mount: AuthMount): object => ({
  accessor: mount.accessor,
  config: configJson(mount),
  description: mount.description,
  external_entropy_access: false,
  local: false,
  options: null,
  seal_wrap: false,
  type: mount.type,
  uuid: mount.id,
});

const configJson = ({ defaultTtlS, maxTtlS }: Pick<AuthMount, 'defaultTtlS' | 'maxTtlS'>): object => ({
  default_lease_ttl: defaultTtlS,
  force_no_cache: false,
  max_lease_ttl: maxTtlS,
  token_type: 'default-service',
});

/** The method that is there from the beginning; its times are the node's own. */
function tokenMountJson({ clusterName }: Node): object {
  const id = clusterName?.id ?? '';
  const mount = { path: 'token', id, accessor: `auth_token_${id.slice(0, 8)}`, description: 'token based credentials' };
  return { ...mountJson({ ...mount, type: 'userpass', defaultTtlS: 0, maxTtlS: 0 }), type: 'token' };
}

async function methodJson(
  { node, service }: { readonly node: Node; readonly service: Service },
  path: string,
): Promise<object | undefined> {
  if (path === 'token') return tokenMountJson(node);
  const mount = await service.logins.mounts.find(path);
  return mount && mountJson(mount);
}

const list = operation(
  'auth-list',
  'read',
  async ({ node, service }) => {
    const mounts = await service.logins.mounts.list();
    const rows = mounts.map((mount) => [`${mount.path}/`, mountJson(mount)] as const);
    return twiceReply(Object.fromEntries([...rows, ['token/', tokenMountJson(node)]]));
  },
  { sudo: false },
);

const read = operation('auth-read', 'read', async (context, call) => {
  const found = await methodJson(context, pathIn(call));
  if (found === undefined) throw noMethod(pathIn(call));
  return dataReply(JSON.stringify(found));
});

const tuning = { description: 'string', default_lease_ttl: 'duration', max_lease_ttl: 'duration' } as const satisfies FieldSchema;
/** Members that clients send and that have nothing to say here. */
const idle = {
  listing_visibility: 'string',
  token_type: 'string',
  options: 'any',
  plugin_version: 'string',
} as const satisfies FieldSchema;

const enable = operation(
  'auth-enable',
  'update',
  async ({ service }, call) => {
    const { values, warnings } = fields(
      {
        type: 'string',
        description: 'string',
        config: 'any',
        local: 'bool',
        seal_wrap: 'bool',
        external_entropy_access: 'bool',
        ...idle,
        method: 'string',
      },
      call.body,
      { method: pathIn(call) },
    );
    const config = membersOf(values.config);
    const { values: tuned } = fields({ ...tuning, ...idle, force_no_cache: 'bool' }, config);
    if (values.type === undefined || values.type === '')
      throw new RequestError('invalid_request', 'backend type must be specified as a string');
    await service.logins.mounts.enable(pathIn(call), values.type, {
      description: values.description,
      defaultTtlS: tuned.default_lease_ttl,
      maxTtlS: tuned.max_lease_ttl,
    });
    return writtenReply(warnings);
  },
  { adds: true },
);

function membersOf(value: JsonValue | undefined): { readonly [member: string]: JsonValue } {
  if (value === undefined || value === null) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as { readonly [member: string]: JsonValue };
  throw new RequestError(
    'invalid_field',
    'Field validation failed: error converting input for field "config": expected an object',
  );
}

const readTuning = operation('auth-tune-read', 'read', async ({ service }, call) => {
  const path = pathIn(call);
  const { limits } = service.registry;
  const mount =
    path === 'token'
      ? { defaultTtlS: 0, maxTtlS: 0, description: 'token based credentials' }
      : await service.logins.mounts.find(path);
  if (mount === undefined) throw noMethod(path);
  // What holds, so a time that is left to the node is the node's.
  const inForce = { defaultTtlS: mount.defaultTtlS || limits.defaultTtlS, maxTtlS: mount.maxTtlS || limits.maxTtlS };
  return twiceReply({ ...configJson(inForce), description: mount.description });
});

const tune = operation('auth-tune', 'update', async ({ service }, call) => {
  const path = pathIn(call);
  const { values, warnings } = fields({ ...tuning, ...idle, method: 'string' }, call.body, { method: path });
  if (path === 'token') throw new RequestError('invalid_request', 'the times of tokens stand in the configuration of the node');
  const change: AuthTuning = {
    description: values.description,
    defaultTtlS: values.default_lease_ttl,
    maxTtlS: values.max_lease_ttl,
  };
  if (!(await service.logins.mounts.tune(path, change))) throw noMethod(path);
  return writtenReply(warnings);
});

const disable = operation('auth-disable', 'delete', async ({ service }, call) => {
  await service.logins.mounts.disable(pathIn(call));
  return noContent;
});

const noMethod = (path: string): RequestError => new RequestError('invalid_request', `No auth engine at ${path}/`);

/** Login methods: which there are, and where. */
export const authRoutes: readonly Route[] = [
  { path: 'sys/auth', operations: { GET: list } },
  { path: 'sys/auth/:method', operations: { GET: read, POST: enable, DELETE: disable } },
  { path: 'sys/auth/:method/tune', operations: { GET: readTuning, POST: tune } },
];
