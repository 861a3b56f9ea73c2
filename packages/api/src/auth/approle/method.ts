import { checkJsonLimits, runAtOnce } from '@transitd/event-loop';
import {
  any,
  checkTextLength,
  credential,
  dataReply,
  duration,
  type FieldSchema,
  int,
  integer,
  type JsonValue,
  jsonMembersMax,
  list,
  map,
  object,
  RequestError,
  string,
  type text,
  textCharsMax,
  textsByName,
  time,
} from '@transitd/http';
import * as answers from '../../operation/answers.ts';
import { type AuthMethod, login, methodHandler, methodOperation } from '../../operation/auth-method.ts';
import { propertiesIn } from '../../operation/kept-fields.ts';
import { found } from '../../operation/operation.ts';
import { namesReply, pageFields } from '../../operation/pages.ts';
import { shown, timeText } from '../../operation/shown.ts';
import { cidrs } from '../../operation/spellings.ts';
import { tidyReply } from '../../operation/tidy.ts';
import { AppRoles } from './logins.ts';
import { type Here, name, requireRole, rolePaths } from './role-paths.ts';
import type { SecretId, SecretIdName } from './secret-id.ts';

const readRoleId = methodHandler({
  about: 'Read the role ID',
  takes: { name },
  answers: answers.data(object({ role_id: string })),
  run: async (context: Here, { values }) => dataReply({ role_id: (await requireRole(context, values.name)).roleId }),
});

const writeRoleId = methodHandler({
  about: 'Set the role ID',
  takes: { name, role_id: credential('New role ID', { required: true }) },
  answers: answers.written,
  run: async (context: Here, { values }) => {
    await requireRole(context, values.name);
    if (values.role_id === undefined) throw new RequestError('invalid_request', 'missing role_id');
    await context.method.update(context.mount, values.name, { roleId: values.role_id, token: {} });
  },
});

/** Parses metadata: an object, or a string that contains a JSON object. */
function metadataOf(value: JsonValue | undefined): Readonly<Record<string, string>> {
  if (typeof value !== 'string') return textsByName('metadata', value);
  if (value === '') return {};
  checkTextLength('metadata', value);
  runAtOnce(checkJsonLimits(value, metadataLimits));
  let metadata: JsonValue;
  try {
    metadata = JSON.parse(value) as JsonValue;
  } catch {
    throw notMetadata('metadata must be a JSON object with string values');
  }
  return textsByName('metadata', metadata);
}

const notMetadata = (reason: string): RequestError => new RequestError('invalid_field', `Field validation failed: ${reason}`);

/** The limits of an object in a body. */
const metadataLimits = {
  depthMax: 2,
  valuesMax: jsonMembersMax.nested,
  containersMax: jsonMembersMax.nested,
  membersMax: () => jsonMembersMax.nested,
  textCharsMax,
  refusal: (reason: string) => notMetadata(`metadata has ${reason}`),
};

const secretIdFields = {
  metadata: any('Metadata of the secret ID: an object with string values; returned on lookup', {
    shape: { type: ['object', 'string'], additionalProperties: string },
  }),
  cidr_list: cidrs('CIDR blocks from which the secret ID may be used', { property: 'cidrs' }),
  token_bound_cidrs: cidrs('CIDR blocks from which tokens created with the secret ID may be used'),
  num_uses: int('Maximum number of uses', { min: 0 }),
  ttl: duration('TTL of the secret ID'),
} as const satisfies FieldSchema;

const createdSecretId = shown<{ readonly secretId: string; readonly secret: SecretId }>({
  secret_id: [string, ({ secretId }) => secretId],
  secret_id_accessor: [string, ({ secret }) => secret.accessor],
  secret_id_num_uses: [integer, ({ secret }) => secret.numUses],
  secret_id_ttl: [integer, ({ secret }) => secret.ttlS],
});

const createSecretId = (takes: typeof secretIdFields & { readonly secret_id?: ReturnType<typeof text> }) =>
  methodHandler({
    about: 'Create a secret ID for the role',
    takes: { name, ...takes },
    answers: answers.data(createdSecretId.schema),
    run: async ({ method, mount }: Here, { values }) => {
      const given = 'secret_id' in takes ? values.secret_id : undefined;
      if ('secret_id' in takes && !given) throw new RequestError('invalid_request', 'missing secret_id');
      const created = await method.createSecretId(mount, values.name, {
        ...propertiesIn(secretIdFields, values),
        secretId: given,
        meta: metadataOf(values.metadata),
      });
      return dataReply(createdSecretId.json(created));
    },
  });

const randomSecretId = createSecretId(secretIdFields);
const customSecretId = createSecretId({ ...secretIdFields, secret_id: credential('Secret ID to use', { required: true }) });

const listSecretIds = methodHandler({
  about: 'List accessors of secret IDs',
  takes: { name, ...pageFields },
  answers: answers.names,
  run: async ({ method, mount }: Here, { values }) => namesReply(await method.secretIdAccessors(mount, values.name), values),
});

const shownSecret = shown<SecretId>({
  secret_id_accessor: [string, (secret) => secret.accessor],
  cidr_list: [list(string), (secret) => secret.cidrs],
  token_bound_cidrs: [list(string), (secret) => secret.tokenBoundCidrs],
  creation_time: [time, (secret) => timeText(secret.createdMs)],
  expiration_time: [time, (secret) => (secret.expiresMs === 0 ? '0001-01-01T00:00:00Z' : timeText(secret.expiresMs))],
  secret_id_num_uses: [integer, (secret) => secret.usesLeft],
  secret_id_ttl: [integer, (secret) => secret.ttlS],
  metadata: [map(string), (secret) => secret.meta],
});

/** The two ways to identify a secret ID, by the name of the field in the body. */
type Way = 'secret_id' | 'secret_id_accessor';

const wayFields = (way: Way) => ({
  name,
  [way]: credential('Secret ID or its accessor, according to the name of the field', { required: true }),
});

function secretNamed(way: Way, given = ''): SecretIdName {
  if (given === '') throw new RequestError('invalid_request', `missing ${way}`);
  return way === 'secret_id' ? { secretId: given } : { accessor: given };
}

const lookUpSecretId = (way: Way) =>
  methodHandler({
    about: 'Read the properties of a secret ID, without the secret ID itself',
    takes: wayFields(way),
    answers: answers.data(shownSecret.schema),
    run: async ({ method, mount }: Here, { values }) => {
      const secret = await method.findSecretId(mount, values.name, secretNamed(way, values[way]));
      return dataReply(shownSecret.json(found(secret)));
    },
  });

const destroySecretId = (way: Way) =>
  methodHandler({
    about: 'Revoke a secret ID',
    takes: wayFields(way),
    answers: answers.written,
    run: async ({ method, mount }: Here, { values }) => {
      await method.destroySecretId(mount, values.name, secretNamed(way, values[way]));
    },
  });

const tidySecretIds = methodHandler({
  about: 'Delete the records of expired secret IDs',
  answers: answers.accepted,
  run: ({ services }: Here) =>
    tidyReply('expired secret IDs and other spent records of logins', async (limit) => ({
      removed: await services.logins.sweep(limit),
      finished: false, // it reads all records of logins, in turn
    })),
});

const lookUp = (way: Way) => ({
  POST: methodOperation('secret-id-lookup', 'update', lookUpSecretId(way), { where: 'replica' }),
});
const destroy = (way: Way) => ({
  POST: methodOperation('secret-id-destroy', 'update', destroySecretId(way)),
  DELETE: methodOperation('secret-id-destroy', 'delete', destroySecretId(way)),
});

const enter = login({
  about: 'Log in with a role ID and a secret ID',
  takes: { role_id: credential('Role ID', { required: true }), secret_id: credential('Secret ID, if the role requires one') },
  roleOf: ({ method, mount }: Here, { role_id: roleId = '' }) => method.roleNameOf(mount, roleId),
  run: (method: AppRoles, request, { role_id: roleId = '', secret_id: secretId = '' }) => method.login(request, roleId, secretId),
});

/** Logins by role ID and secret ID. */
export const approle: AuthMethod = {
  type: 'approle',
  open: (services) => new AppRoles(services),
  paths: {
    'role/:name/role-id': {
      GET: methodOperation('role-id', 'read', readRoleId),
      POST: methodOperation('role-id-write', 'update', writeRoleId, {
        sameAs: ({ method, name }) => [`auth/${method}/role/${name}`],
      }),
    },
    'role/:name/secret-id': {
      POST: methodOperation('secret-id', 'update', randomSecretId),
      LIST: methodOperation('secret-id-list', 'list', listSecretIds),
    },
    'role/:name/custom-secret-id': {
      POST: methodOperation('secret-id', 'update', customSecretId, {
        sameAs: ({ method, name }) => [`auth/${method}/role/${name}/secret-id`],
      }),
    },
    'role/:name/secret-id/lookup': lookUp('secret_id'),
    'role/:name/secret-id/destroy': destroy('secret_id'),
    'role/:name/secret-id-accessor/lookup': lookUp('secret_id_accessor'),
    'role/:name/secret-id-accessor/destroy': destroy('secret_id_accessor'),
    'tidy/secret-id': { POST: methodOperation('secret-id-tidy', 'update', tidySecretIds) },
    ...rolePaths,
    login: { POST: enter },
  },
};
