import {
  any,
  bool,
  constant,
  dataReply,
  type FieldSchema,
  type Fields,
  fields,
  ignoredField,
  map,
  object,
  objectIn,
  pathText,
  RequestError,
  string,
  text,
  texts,
  topLevelDataReply,
  writtenReply,
} from '@transitd/http';
import { accessorOf, type Mount, type MountTuning, mountAt, type Node } from '@transitd/node';
import { printableName } from '@transitd/transit-engine';
import * as answers from '../operation/answers.ts';
import { inertIn, inertOfMount, plugin_version, unsupportedOfMount } from '../operation/inert-fields.ts';
import { membersIn, propertiesIn, sorted } from '../operation/kept-fields.ts';
import { type Call, type Context, found, operationsOn, type Route } from '../operation/operation.ts';
import { mountPath } from '../operation/spellings.ts';
import {
  configMembers,
  inForce,
  optionsJson,
  optionsSchema,
  ownConfigMembers,
  shownEntry,
  storedFields,
  ttlFields,
} from './mount-json.ts';

const mountOperation = operationsOn((context: Context) => context);

const prefix = 'sys/mounts/';
const suffix = '/tune';

/** Returns the path of the mount: the request path without the prefix of the route. */
const pathIn = ({ path }: Pick<Call, 'path'>): string => path.slice(prefix.length);
const tunedPathIn = (call: Pick<Call, 'path'>): string => pathIn(call).slice(0, -suffix.length);

/** Settings in the configuration of a mount. @param kind - that of the TTLs, which differs between the operations */
const tuning = <Kind extends 'duration' | 'lease'>(kind: Kind) => ({
  allowed_managed_keys: texts('Names of the managed keys that the mount may use', { dropsEmpty: true }),
  ciphertext_prefix: text('Prefix of ciphertexts, signatures and MACs', { shape: { examples: ['svc'] } }),
  ...ttlFields(kind, 'Stored and returned, but has no effect', 'Stored and returned, but has no effect'),
});

const configJson = (mount: Pick<Mount, 'allowedManagedKeys' | 'ciphertextPrefix' | 'defaultTtlS' | 'inert' | 'maxTtlS'>) => {
  const { allowed_managed_keys: keys, ...shown } = membersIn(tuning('duration'), mount);
  const hasKeys = mount.allowedManagedKeys.length > 0;
  return {
    ...sorted({ ...(hasKeys && { allowed_managed_keys: keys }), ...shown, force_no_cache: false }),
    ...mount.inert,
  };
};

/** Returns a mount in the form of the list. */
export const mountJson = (mount: Mount): object =>
  shownEntry.json({ ...mount, accessor: accessorOf(mount), config: configJson(mount) });

/** Returns the built-in entry `sys/`, which is not an engine. */
export function systemJson({ member }: Node): object {
  const id = member?.clusterName?.id ?? '';
  return shownEntry.json({
    accessor: `system_${id.slice(0, 8)}`,
    config: { default_lease_ttl: 0, force_no_cache: false, max_lease_ttl: 0 },
    description: 'system endpoints used for control, policy and debugging',
    externalEntropyAccess: false,
    id,
    local: false,
    options: {},
    sealWrap: false,
    type: 'system',
  });
}

const list = mountOperation(
  'mounts-list',
  'read',
  { about: 'List the mounts', answers: answers.topLevelData(map(shownEntry.schema)) },
  ({ node, services }) => {
    const rows = services.mounts.list.map((mount) => [`${mount.path}/`, mountJson(mount)] as const);
    return topLevelDataReply(Object.fromEntries([...rows, ['sys/', systemJson(node)]]));
  },
);

const read = mountOperation(
  'mount-read',
  'read',
  { about: 'Read a mount', answers: answers.topLevelData(shownEntry.schema) },
  ({ node, services }, call) => {
    const path = pathIn(call);
    return topLevelDataReply(path === 'sys' ? systemJson(node) : mountJson(mountAt(services.mounts.list, path)));
  },
);

/** Fields that clients send and that have no effect on a transit engine. */
const unused = {
  ...inertOfMount,
  ...unsupportedOfMount,
} as const satisfies FieldSchema;
const configFields = { ...tuning('duration'), ...unused, options: ignoredField('any'), plugin_name: ignoredField('string') };
const fixedFields = {
  local: bool('Stored and returned, but has no effect'),
  seal_wrap: bool('Stored and returned, but has no effect'),
  external_entropy_access: bool('Stored and returned, but has no effect'),
};

const enable = mountOperation(
  'mount-enable',
  'update',
  {
    about: 'Mount an engine',
    takes: {
      type: text('Type of the engine', { required: true, oneOf: ['transit'] }),
      description: storedFields.description,
      config: any('Settings of the mount', { members: configFields }),
      options: storedFields.options,
      ...fixedFields,
      plugin_name: ignoredField('string'),
      plugin_version,
    },
    answers: answers.written,
  },
  async ({ services }, { values, path }) => {
    const config = fields(configFields, objectIn('config', values.config));
    await services.mounts.enable({
      path: pathIn({ path }),
      type: values.type ?? '',
      ...propertiesIn(fixedFields, values),
      ...tuningIn(config.values),
      ...propertiesIn(storedFields, values),
    });
    const inVain = values.seal_wrap === true || values.external_entropy_access === true;
    return writtenReply([...config.warnings, ...(inVain ? [noEffect] : [])]);
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
    const config = configJson(inForce(mount, services.registry.limits));
    return topLevelDataReply({ ...config, description: mount.description, options: optionsJson(mount) });
  },
);

const tuneFields = { ...tuning('lease'), ...unused, ...storedFields };

const tune = mountOperation(
  'mount-tune',
  'update',
  { about: 'Update settings of a mount; omitted fields keep their values', takes: tuneFields, answers: answers.written },
  async ({ services }, { values, ...call }) => {
    const path = tunedPathIn(call);
    const before = services.mounts.list.find((mount) => mount.path === path)?.ciphertextPrefix;
    await services.mounts.tune(path, { ...tuningIn(values), ...propertiesIn(storedFields, values) });
    const isForgotten = before !== undefined && !alwaysTaken.has(before) && (values.ciphertext_prefix || before) !== before;
    return writtenReply(isForgotten ? [forgotten(before)] : []);
  },
);

/** Prefixes that every mount accepts when it reads, whatever prefix it writes. */
const alwaysTaken: ReadonlySet<string> = new Set(['svc', 'vault']);
const forgotten = (before: string): string =>
  `values written with the prefix ${printableName(before)}: are no longer accepted, unless the mount is tuned back to this prefix`;

/** Returns the settings in a request. An empty prefix means that no prefix is set. */
const tuningIn = (values: Fields<typeof configFields>['values'] | Fields<typeof tuneFields>['values']): MountTuning => ({
  ...propertiesIn(tuning('lease'), values),
  ciphertextPrefix: values.ciphertext_prefix || undefined,
  inert: inertIn(inertOfMount, values),
});

/** Unmounts with one small write. Afterwards the mount is unreachable; its records are deleted later. */
const disable = mountOperation(
  'mount-disable',
  'delete',
  { about: 'Unmount an engine and delete all its keys', answers: answers.written },
  ({ services }, call) => services.mounts.disable(pathIn(call)),
);

const remount = mountOperation(
  'remount',
  'update',
  {
    about: 'Move a mount, with its keys, to another path',
    takes: { from: text('Current path of the mount', { required: true }), to: text('New path of the mount', { required: true }) },
    answers: answers.topLevelData(object({ migration_id: string })),
    sudo: true,
    // It unmounts at one path, and mounts at another.
    sameAs: (_params, { from, to } = {}) => [from, to].flatMap((path) => (path ? [prefix + mountPath(String(path))] : [])),
  },
  async ({ services }, { values }) => {
    const [from, to] = [values.from, values.to].map((path = '') => mountPath(path));
    if (!from || !to) throw new RequestError('invalid_request', 'both "from" and "to" must be given');
    const id = await services.mounts.remount({ from, to });
    return topLevelDataReply({ migration_id: id });
  },
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
    takes: { id: pathText('ID of the move') },
    answers: answers.data(moveSchema),
  },
  ({ services }, { values }) => {
    const move = found(services.mounts.move(values.id));
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
