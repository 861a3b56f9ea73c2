import type { AppRole, SecretId } from '@transitd/access';
import { checkJsonLimits, runAtOnce } from '@transitd/event-loop';
import {
  any,
  bool,
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
import * as answers from '../operation/answers.ts';
import { memberSchemas, membersIn, propertiesIn, sorted } from '../operation/kept-fields.ts';
import { found, type GuardedOperation, namesReply, type Route } from '../operation/operation.ts';
import { recordOperations } from '../operation/records.ts';
import { shown, timeText } from '../operation/shown.ts';
import { cidrs } from '../operation/spellings.ts';
import { type MethodContext, type MethodHandler, methodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsMembers, tokenSettingsOf } from './login-fields.ts';

/** Fields of a role itself; `token_policies` and the other settings of its tokens are `tokenFields`. */
export const ownFields = {
  bind_secret_id: bool('Require a secret ID at login', { default: true }),
  secret_id_bound_cidrs: cidrs('CIDR blocks from which secret IDs may be used'),
  bound_cidr_list: cidrs('Alias of `secret_id_bound_cidrs`', { aliasOf: 'secret_id_bound_cidrs' }),
  secret_id_num_uses: int('Maximum number of uses of a secret ID; 0 for no limit', { min: 0 }),
  secret_id_ttl: duration('TTL of a secret ID; 0 for no expiry'),
} as const satisfies FieldSchema;

/** Exported because the roles of `approle` and `jwt` share their paths; see roles.ts. */
export const appRoles = recordOperations({
  noun: 'role',
  name: 'Name of the role',
  takes: { role_id: credential('Role ID, which logins send; random if omitted'), ...ownFields, ...tokenFields },
  shown: object(sorted({ ...memberSchemas(ownFields), local_secret_ids: { const: false }, ...tokenSettingsMembers })),
  find: async ({ services, mount }: MethodContext, name) => {
    const role = (await services.logins.approle.roles.find(mount.id, name))?.value;
    return role && sorted({ ...membersIn(ownFields, role), local_secret_ids: false, ...tokenSettingsJson(role.token) });
  },
  list: ({ services, mount }) => services.logins.approle.roles.list(mount.id),
  write: ({ services, mount }, name, values) =>
    services.logins.approle.write(mount, name, {
      ...propertiesIn(ownFields, values),
      roleId: values.role_id || undefined,
      token: tokenSettingsOf(values),
    }),
  delete: ({ services, mount }, name) => services.logins.approle.delete(mount, name),
});
export const { name } = appRoles.read.takes;

export const requireRole = async ({ services, mount }: MethodContext, name: string): Promise<AppRole> =>
  found(await services.logins.approle.roles.find(mount.id, name)).value;

const readRoleId = methodHandler({
  about: 'Read the role ID',
  takes: { name },
  answers: answers.data(object({ role_id: string })),
  run: async (context, { values }) => dataReply({ role_id: (await requireRole(context, values.name)).roleId }),
});

const writeRoleId = methodHandler({
  about: 'Set the role ID',
  takes: { name, role_id: credential('New role ID', { required: true }) },
  answers: answers.written,
  run: async (context, { values }) => {
    await requireRole(context, values.name);
    if (values.role_id === undefined) throw new RequestError('invalid_request', 'missing role_id');
    await context.services.logins.approle.update(context.mount, values.name, { roleId: values.role_id, token: {} });
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

const createSecretId = (takes: typeof secretIdFields & { readonly secret_id?: ReturnType<typeof text> }): MethodHandler =>
  methodHandler({
    about: 'Create a secret ID for the role',
    takes: { name, ...takes },
    answers: answers.data(createdSecretId.schema),
    run: async ({ services, mount }, { values }) => {
      const given = 'secret_id' in takes ? values.secret_id : undefined;
      if ('secret_id' in takes && !given) throw new RequestError('invalid_request', 'missing secret_id');
      const created = await services.logins.approle.createSecretId(mount, values.name, {
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
  takes: { name },
  answers: answers.names,
  run: async ({ services, mount }, { values }) => namesReply(await services.logins.approle.secretIdAccessors(mount, values.name)),
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

type SecretName = { readonly secretId: string } | { readonly accessor: string };

/** The two ways to identify a secret ID, by the name of the field in the body. */
const waysToName = {
  secret_id: (given: string): SecretName => ({ secretId: given }),
  secret_id_accessor: (given: string): SecretName => ({ accessor: given }),
};
type Way = keyof typeof waysToName;

const wayFields = (way: Way) => ({
  name,
  [way]: credential('Secret ID or its accessor, according to the name of the field', { required: true }),
});

function secretNamed(way: Way, given: string | undefined): SecretName {
  if (given === undefined || given === '') throw new RequestError('invalid_request', `missing ${way}`);
  return waysToName[way](given);
}

const lookUpSecretId = (way: Way): MethodHandler =>
  methodHandler({
    about: 'Read the properties of a secret ID, without the secret ID itself',
    takes: wayFields(way),
    answers: answers.data(shownSecret.schema),
    run: async ({ services, mount }, { values }) => {
      const secret = await services.logins.approle.findSecretId(mount, values.name, secretNamed(way, values[way]));
      return dataReply(shownSecret.json(found(secret)));
    },
  });

const destroySecretId = (way: Way): MethodHandler =>
  methodHandler({
    about: 'Revoke a secret ID',
    takes: wayFields(way),
    answers: answers.written,
    run: async ({ services, mount }, { values }) => {
      await services.logins.approle.destroySecretId(mount, values.name, secretNamed(way, values[way]));
    },
  });

const approleOperation = (
  name: string,
  capability: 'read' | 'update' | 'delete' | 'list',
  approle: MethodHandler,
  more: Pick<GuardedOperation, 'where' | 'sameAs'> = {},
) => methodOperation(name, capability, { approle }, more);

const lookUp = (way: Way) => ({
  POST: approleOperation('approle-secret-id-lookup', 'update', lookUpSecretId(way), { where: 'replica' }),
});
const destroy = (way: Way) => ({
  POST: approleOperation('approle-secret-id-destroy', 'update', destroySecretId(way)),
  DELETE: approleOperation('approle-secret-id-destroy', 'delete', destroySecretId(way)),
});

/** Routes of role IDs and secret IDs. Roles and the login share their paths with `jwt`; see roles.ts. */
export const approleRoutes: readonly Route[] = [
  methodRoute('role/:name/role-id', {
    GET: approleOperation('approle-role-id', 'read', readRoleId),
    POST: approleOperation('approle-role-id-write', 'update', writeRoleId, {
      sameAs: ({ method, name }) => [`auth/${method}/role/${name}`],
    }),
  }),
  methodRoute('role/:name/secret-id', {
    POST: approleOperation('approle-secret-id', 'update', randomSecretId),
    LIST: approleOperation('approle-secret-id-list', 'list', listSecretIds),
  }),
  methodRoute('role/:name/custom-secret-id', {
    POST: approleOperation('approle-secret-id', 'update', customSecretId),
  }),
  methodRoute('role/:name/secret-id/lookup', lookUp('secret_id')),
  methodRoute('role/:name/secret-id/destroy', destroy('secret_id')),
  methodRoute('role/:name/secret-id-accessor/lookup', lookUp('secret_id_accessor')),
  methodRoute('role/:name/secret-id-accessor/destroy', destroy('secret_id_accessor')),
];
