import { dataReply, noContent, twiceReply, writtenReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { type FieldSchema, fields } from '../http/fields.ts';
import type { Body, JsonValue } from '../http/json.ts';
import type { Reply } from '../http/reply.ts';
import { textList, textsByName } from '../http/text-list.ts';
import { type MountTuning, mountAt } from '../node/mount-changes.ts';
import type { Node } from '../node/node.ts';
import type { Service } from '../node/service.ts';
import { configJson, mountJson, optionsJson } from './mount-json.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

function operation(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  run: (context: { readonly node: Node; readonly service: Service }, call: Call) => Promise<Reply> | Reply,
  more: Pick<GuardedOperation, 'sudo' | 'adds'> = {},
): GuardedOperation {
  return { name, access: 'token', capability, ...more, run };
}

const prefix = 'sys/mounts/';
const suffix = '/tune';

/** The path of the mount: all segments of the request's that are not the route's. */
const pathIn = ({ path }: Call): string => path.slice(prefix.length);
const tunedPathIn = (call: Call): string => pathIn(call).slice(0, -suffix.length);

/** What is there from the beginning and is no engine. */
function systemJson({ clusterName }: Node): object {
  const id = clusterName?.id ?? '';
  return {
    accessor: `system_${id.slice(0, 8)}`,
    config: { default_lease_ttl: 0, force_no_cache: false, max_lease_ttl: 0 },
    description: 'system endpoints used for control, policy and debugging',
    external_entropy_access: false,
    local: false,
    options: null,
    seal_wrap: false,
    type: 'system',
    uuid: id,
  };
}

const list = operation('mounts-list', 'read', ({ node, service }) => {
  const rows = service.mounts.list.map((mount) => [`${mount.path}/`, mountJson(mount)] as const);
  return twiceReply(Object.fromEntries([...rows, ['sys/', systemJson(node)]]));
});

const read = operation('mount-read', 'read', ({ node, service }, call) => {
  const path = pathIn(call);
  return dataReply(JSON.stringify(path === 'sys' ? systemJson(node) : mountJson(mountAt(service.mounts.list, path))));
});

const tuning = {
  allowed_managed_keys: 'any',
  ciphertext_prefix: 'string',
  default_lease_ttl: 'duration',
  max_lease_ttl: 'duration',
} as const satisfies FieldSchema;

/** Members that clients send and that have nothing to say to a transit engine. */
const idle = {
  allowed_response_headers: 'any',
  audit_non_hmac_request_keys: 'any',
  audit_non_hmac_response_keys: 'any',
  delegated_auth_accessors: 'any',
  force_no_cache: 'bool',
  identity_token_key: 'string',
  listing_visibility: 'string',
  passthrough_request_headers: 'any',
  plugin_version: 'string',
  token_type: 'string',
  user_lockout_config: 'any',
} as const satisfies FieldSchema;

const enable = operation(
  'mount-enable',
  'update',
  async ({ service }, call) => {
    const { values, warnings } = fields(
      {
        type: 'string',
        description: 'string',
        config: 'any',
        options: 'any',
        local: 'bool',
        seal_wrap: 'bool',
        external_entropy_access: 'bool',
        plugin_name: 'string',
        plugin_version: 'string',
      },
      call.body,
    );
    const config = fields({ ...tuning, ...idle }, membersOf(values.config));
    await service.mounts.enable({
      path: pathIn(call),
      type: values.type ?? '',
      local: values.local,
      sealWrap: values.seal_wrap,
      ...tuningIn(config.values),
      description: values.description,
      options: textsByName('options', values.options),
    });
    const inVain = values.seal_wrap === true || values.external_entropy_access === true;
    return writtenReply([...warnings, ...config.warnings, ...(inVain ? [noEffect] : [])]);
  },
  { adds: true },
);

const noEffect =
  'seal_wrap and external_entropy_access have no effect: every value is encrypted by the barrier, and keys come from this platform';

const readTuning = operation('mount-tune-read', 'read', ({ service }, call) => {
  const mount = mountAt(service.mounts.list, tunedPathIn(call));
  const { limits } = service.registry;
  // What holds, so a time that is left to the node is the node's.
  const inForce = { ...mount, defaultTtlS: mount.defaultTtlS || limits.defaultTtlS, maxTtlS: mount.maxTtlS || limits.maxTtlS };
  return twiceReply({ ...configJson(inForce), description: mount.description, options: optionsJson(mount) });
});

const tune = operation('mount-tune', 'update', async ({ service }, call) => {
  const path = tunedPathIn(call);
  const { values, warnings } = fields({ ...tuning, ...idle, description: 'string', options: 'any' }, timesLeft(call.body));
  const before = service.mounts.list.find((mount) => mount.path === path)?.ciphertextPrefix;
  await service.mounts.tune(path, {
    ...tuningIn(values),
    description: values.description,
    ...(values.options !== undefined && { options: textsByName('options', values.options) }),
  });
  const isForgotten = before !== undefined && !alwaysTaken.has(before) && (values.ciphertext_prefix || before) !== before;
  return writtenReply(isForgotten ? [...warnings, forgotten(before)] : warnings);
});

/** Prefixes that every mount takes, whatever it writes. */
const alwaysTaken: ReadonlySet<string> = new Set(['svc', 'vault']);
const forgotten = (before: string): string =>
  `what was written with the prefix ${before}: is not taken any more, until the mount is tuned back to it`;

/** Of a time, command lines send an empty text for what is to stay, and `system` for what is to be left to the node. */
function timesLeft(body: Body): Body {
  const members = Object.entries(body).map(([name, value]) => {
    if (!tuningTimes.has(name)) return [name, value] as const;
    return [name, value === '' ? null : value === 'system' ? 0 : value] as const;
  });
  return Object.fromEntries(members);
}

const tuningTimes: ReadonlySet<string> = new Set(['default_lease_ttl', 'max_lease_ttl'] satisfies (keyof typeof tuning)[]);

/** An empty prefix is none. */
function tuningIn(values: ReturnType<typeof fields<typeof tuning>>['values']): MountTuning {
  return {
    allowedManagedKeys: textList('allowed_managed_keys', values.allowed_managed_keys)?.filter((name) => name !== ''),
    ciphertextPrefix: values.ciphertext_prefix || undefined,
    defaultTtlS: values.default_lease_ttl,
    maxTtlS: values.max_lease_ttl,
  };
}

function membersOf(value: JsonValue | undefined): { readonly [member: string]: JsonValue } {
  if (value === undefined || value === null) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as { readonly [member: string]: JsonValue };
  throw new RequestError(
    'invalid_field',
    'Field validation failed: error converting input for field "config": expected an object',
  );
}

/** One small write, with which nothing of the mount can be reached; its records are cleared away behind it. */
const disable = operation('mount-disable', 'delete', async ({ service }, call) => {
  await service.mounts.disable(pathIn(call));
  return noContent;
});

const remount = operation(
  'remount',
  'update',
  async ({ service }, { body }) => {
    const { values, warnings } = fields({ from: 'string', to: 'string' }, body);
    const [from, to] = [values.from, values.to].map((path) => (path ?? '').replace(/^\/|\/$/g, ''));
    if (!from || !to) throw new RequestError('invalid_request', 'both "from" and "to" must be given');
    const id = await service.mounts.remount({ from, to });
    return dataReply(JSON.stringify({ migration_id: id }), warnings);
  },
  { sudo: true },
);

/** A move is one write: whoever can ask for it finds it done. */
const remountStatus = operation('remount-status', 'read', ({ service }, { params }) => {
  const move = service.mounts.move(params['id'] ?? '');
  if (move === undefined) throw new RequestError('not_found', '');
  const info = { source_mount: `${move.from}/`, target_mount: `${move.to}/`, status: 'success' };
  return dataReply(JSON.stringify({ migration_id: move.id, migration_info: info }));
});

/** Where engines are mounted. */
export const mountRoutes: readonly Route[] = [
  { path: 'sys/mounts', operations: { GET: list } },
  { path: `${prefix}*path${suffix}`, operations: { GET: readTuning, POST: tune } },
  { path: `${prefix}*path`, operations: { GET: read, POST: enable, DELETE: disable } },
  { path: 'sys/remount', operations: { POST: remount } },
  { path: 'sys/remount/status/:id', operations: { GET: remountStatus } },
];
