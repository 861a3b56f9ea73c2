import {
  any,
  bool,
  constant,
  dataReply,
  duration,
  type Field,
  type FieldSchema,
  type Fields,
  fields,
  ignoredField,
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
  texts,
  topLevelDataReply,
  writtenReply,
} from '@transitd/http';
import { type MountTuning, mountAt, type Node, type Services } from '@transitd/node';
import { printableName } from '@transitd/transit-engine';
import * as answers from '../operation/answers.ts';
import { inertIn, inertOfMount, plugin_version, unsupportedOfMount } from '../operation/inert-fields.ts';
import {
  type Call,
  type GuardedOperation,
  guarded,
  type OperationDescription,
  pathParam,
  type Route,
  type TypedCall,
} from '../operation/operation.ts';
import {
  configJson,
  configMembers,
  mountJson,
  mountMembers,
  optionsJson,
  optionsSchema,
  ownConfigMembers,
} from './mount-json.ts';

const mountOperation = <S extends FieldSchema = Record<never, never>>(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  description: OperationDescription<S>,
  run: (context: { readonly node: Node; readonly services: Services }, call: TypedCall<S>) => Promise<Reply> | Reply,
  more: Pick<GuardedOperation, 'sudo'> = {},
): GuardedOperation => guarded({ name, capability, ...description, ...more, run });

const prefix = 'sys/mounts/';
const suffix = '/tune';

/** Returns the path of the mount: the request path without the prefix of the route. */
const pathIn = ({ path }: Pick<Call, 'path'>): string => path.slice(prefix.length);
const tunedPathIn = (call: Pick<Call, 'path'>): string => pathIn(call).slice(0, -suffix.length);

/** Returns the built-in entry `sys/`, which is not an engine. */
export function systemJson({ member }: Node): object {
  const id = member?.clusterName?.id ?? '';
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

const list = mountOperation(
  'mounts-list',
  'read',
  { about: 'List the mounts', answers: answers.topLevelData(map(object(mountMembers))) },
  ({ node, services }) => {
    const rows = services.mounts.list.map((mount) => [`${mount.path}/`, mountJson(mount)] as const);
    return topLevelDataReply(Object.fromEntries([...rows, ['sys/', systemJson(node)]]));
  },
);

const read = mountOperation(
  'mount-read',
  'read',
  { about: 'Read a mount', answers: answers.topLevelData(object(mountMembers)) },
  ({ node, services }, call) => {
    const path = pathIn(call);
    return topLevelDataReply(path === 'sys' ? systemJson(node) : mountJson(mountAt(services.mounts.list, path)));
  },
);

/** Settings that are stored. @param time - makes the fields for TTLs, whose kind differs between the operations */
const tuning = <Time extends Field>(time: (about: string) => Time) => ({
  allowed_managed_keys: texts('Names of the managed keys that the mount may use'),
  ciphertext_prefix: text('Prefix of ciphertexts, signatures and MACs', { shape: { examples: ['svc'] } }),
  default_lease_ttl: time('Stored and returned, but has no effect'),
  max_lease_ttl: time('Stored and returned, but has no effect'),
});

/** Fields that clients send and that have no effect on a transit engine. */
const unused = {
  ...inertOfMount,
  ...unsupportedOfMount,
} as const satisfies FieldSchema;
const configFields = { ...tuning(duration), ...unused, options: ignoredField('any'), plugin_name: ignoredField('string') };

const enable = mountOperation(
  'mount-enable',
  'update',
  {
    about: 'Mount an engine',
    takes: {
      type: text('Type of the engine', { required: true, oneOf: ['transit'] }),
      description: text('Description for operators'),
      config: any('Settings of the mount', { members: configFields }),
      options: textMap('Stored and returned, but has no effect'),
      local: bool('Stored and returned, but has no effect'),
      seal_wrap: bool('Stored and returned, but has no effect'),
      external_entropy_access: bool('Stored and returned, but has no effect'),
      plugin_name: ignoredField('string'),
      plugin_version,
    },
    answers: answers.written,
  },
  async ({ services }, { values, warnings, ...call }) => {
    const config = fields(configFields, objectIn('config', values.config));
    await services.mounts.enable({
      path: pathIn(call),
      type: values.type ?? '',
      local: values.local,
      sealWrap: values.seal_wrap,
      externalEntropyAccess: values.external_entropy_access,
      ...tuningIn(config.values),
      description: values.description,
      options: values.options ?? {},
    });
    const inVain = values.seal_wrap === true || values.external_entropy_access === true;
    return writtenReply([...warnings, ...config.warnings, ...(inVain ? [noEffect] : [])]);
  },
);

const noEffect =
  'seal_wrap and external_entropy_access have no effect: every value is encrypted by the barrier, and keys come from this platform';

const tunedSchema = object(
  { ...configMembers, ciphertext_prefix: string, description: string, options: optionsSchema },
  ownConfigMembers,
);

const readTuning = mountOperation(
  'mount-tune-read',
  'read',
  { about: 'Read the effective settings of a mount', answers: answers.topLevelData(tunedSchema) },
  ({ services }, call) => {
    const mount = mountAt(services.mounts.list, tunedPathIn(call));
    const { limits } = services.registry;
    // The effective values: for a TTL that is not set, the default of the node.
    const inForce = { ...mount, defaultTtlS: mount.defaultTtlS || limits.defaultTtlS, maxTtlS: mount.maxTtlS || limits.maxTtlS };
    return topLevelDataReply({ ...configJson(inForce), description: mount.description, options: optionsJson(mount) });
  },
);

const tuneFields = {
  ...tuning(lease),
  ...unused,
  description: text('Description for operators'),
  options: textMap('Stored and returned, but has no effect'),
};

const tune = mountOperation(
  'mount-tune',
  'update',
  { about: 'Update settings of a mount; omitted fields keep their values', takes: tuneFields, answers: answers.written },
  async ({ services }, { values, warnings, ...call }) => {
    const path = tunedPathIn(call);
    const before = services.mounts.list.find((mount) => mount.path === path)?.ciphertextPrefix;
    await services.mounts.tune(path, {
      ...tuningIn(values),
      description: values.description,
      ...(values.options !== undefined && { options: values.options }),
    });
    const isForgotten = before !== undefined && !alwaysTaken.has(before) && (values.ciphertext_prefix || before) !== before;
    return writtenReply(isForgotten ? [...warnings, forgotten(before)] : warnings);
  },
);

/** Prefixes that every mount accepts when it reads, whatever prefix it writes. */
const alwaysTaken: ReadonlySet<string> = new Set(['svc', 'vault']);
const forgotten = (before: string): string =>
  `values written with the prefix ${printableName(before)}: are no longer accepted, unless the mount is tuned back to this prefix`;

/** Returns the settings in a request. An empty prefix means that no prefix is set. */
const tuningIn = (values: Fields<typeof configFields>['values'] | Fields<typeof tuneFields>['values']): MountTuning => ({
  allowedManagedKeys: values.allowed_managed_keys?.filter((name) => name !== ''),
  ciphertextPrefix: values.ciphertext_prefix || undefined,
  defaultTtlS: values.default_lease_ttl,
  maxTtlS: values.max_lease_ttl,
  inert: inertIn(inertOfMount, values),
});

/** Unmounts with one small write. Afterwards the mount is unreachable; its records are deleted later. */
const disable = mountOperation(
  'mount-disable',
  'delete',
  { about: 'Unmount an engine and delete all its keys', answers: answers.written },
  async ({ services }, call) => {
    await services.mounts.disable(pathIn(call));
    return noContentReply;
  },
);

const remount = mountOperation(
  'remount',
  'update',
  {
    about: 'Move a mount, with its keys, to another path',
    takes: { from: text('Current path of the mount', { required: true }), to: text('New path of the mount', { required: true }) },
    answers: answers.data(object({ migration_id: string })),
  },
  async ({ services }, { values, warnings }) => {
    const [from, to] = [values.from, values.to].map((path) => (path ?? '').replace(/^\/|\/$/g, ''));
    if (!from || !to) throw new RequestError('invalid_request', 'both "from" and "to" must be given');
    const id = await services.mounts.remount({ from, to });
    return dataReply({ migration_id: id }, warnings);
  },
  { sudo: true },
);

const moveSchema = object({
  migration_id: string,
  migration_info: object({ source_mount: string, target_mount: string, status: constant('success') }),
});

/** A move is a single write that is complete before the response, so its status is always `success`. */
const remountStatus = mountOperation(
  'remount-status',
  'read',
  {
    about: 'Read the status of a mount move',
    takes: { id: text('ID of the move', { required: true }) },
    answers: answers.data(moveSchema),
  },
  ({ services }, call) => {
    const move = services.mounts.move(pathParam(call, 'id'));
    if (move === undefined) throw new RequestError('not_found', '');
    const info = { source_mount: `${move.from}/`, target_mount: `${move.to}/`, status: 'success' };
    return dataReply({ migration_id: move.id, migration_info: info });
  },
);

/** Routes of engine mounts. */
export const mountRoutes: readonly Route[] = [
  { path: 'sys/mounts', operations: { GET: list } },
  { path: `${prefix}*path${suffix}`, operations: { GET: readTuning, POST: tune } },
  { path: `${prefix}*path`, operations: { GET: read, POST: enable, DELETE: disable } },
  { path: 'sys/remount', operations: { POST: remount } },
  { path: 'sys/remount/status/:id', operations: { GET: remountStatus } },
];
