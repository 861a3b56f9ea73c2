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
  noContentReply,
  object,
  RequestError,
  string,
  text,
  textCharsMax,
  textsByName,
  time,
  writtenReply,
} from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { memberSchemas, membersIn, propertiesIn, sorted } from '../operation/kept-fields.ts';
import { type Call, found, type GuardedOperation, namesReply, pathParam, type Route } from '../operation/operation.ts';
import { cidrs } from '../operation/spellings.ts';
import { type MethodContext, type MethodHandler, methodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsMembers, tokenSettingsOf } from './login-fields.ts';

type Named = Pick<Call, 'params'>;

const nameIn = (call: Named): string => pathParam(call, 'name');
const name = text('Name of the role', { required: true });

/** Fields of a role itself; `token_policies` and the other settings of its tokens are `tokenFields`. */
export const ownFields = {
  bind_secret_id: bool('Require a secret ID at login', { default: true }),
  secret_id_bound_cidrs: cidrs('CIDR blocks from which secret IDs may be used'),
  bound_cidr_list: cidrs('Alias of `secret_id_bound_cidrs`', { aliasOf: 'secret_id_bound_cidrs' }),
  secret_id_num_uses: int('Maximum number of uses of a secret ID; 0 for no limit', { min: 0 }),
  secret_id_ttl: duration('TTL of a secret ID; 0 for no expiry'),
} as const satisfies FieldSchema;

/** Exported because the roles of `approle` and `jwt` share their paths; see roles.ts. */
export const writeAppRole = methodHandler({
  about: 'Create a role, or update the given fields of an existing one',
  takes: {
    name,
    role_id: credential('Role ID, which logins send; random if omitted'),
    ...ownFields,
    ...tokenFields,
  },
  answers: answers.written,
  run: async ({ services, mount }, { values, warnings, ...call }) => {
    await services.logins.approle.write(mount, nameIn(call), {
      ...propertiesIn(ownFields, values),
      roleId: values.role_id || undefined,
      token: tokenSettingsOf(values),
    });
    return writtenReply(warnings);
  },
});

export const requireRole = async ({ services, mount }: MethodContext, call: Named): Promise<AppRole> =>
  found(await services.logins.approle.roles.find(mount.id, nameIn(call))).value;

export const readAppRole = methodHandler({
  about: 'Read a role',
  takes: { name },
  answers: answers.data(
    object(sorted({ ...memberSchemas(ownFields), local_secret_ids: { const: false }, ...tokenSettingsMembers })),
  ),
  run: async (context, call) => {
    const role = await requireRole(context, call);
    return dataReply(sorted({ ...membersIn(ownFields, role), local_secret_ids: false, ...tokenSettingsJson(role.token) }));
  },
});

export const deleteAppRole = methodHandler({
  about: 'Delete a role',
  takes: { name },
  answers: answers.written,
  run: async ({ services, mount }, call) => {
    await services.logins.approle.delete(mount, nameIn(call));
    return noContentReply;
  },
});

export const listAppRoles = methodHandler({
  about: 'List role names',
  answers: answers.names,
  run: async ({ services, mount }) => namesReply(await services.logins.approle.roles.list(mount.id)),
});

const readRoleId = methodHandler({
  about: 'Read the role ID',
  takes: { name },
  answers: answers.data(object({ role_id: string })),
  run: async (context, call) => dataReply({ role_id: (await requireRole(context, call)).roleId }),
});

const writeRoleId = methodHandler({
  about: 'Set the role ID',
  takes: { name, role_id: credential('New role ID', { required: true }) },
  answers: answers.written,
  run: async (context, { values, warnings, ...call }) => {
    await requireRole(context, call);
    if (values.role_id === undefined) throw new RequestError('invalid_request', 'missing role_id');
    await context.services.logins.approle.update(context.mount, nameIn(call), { roleId: values.role_id, token: {} });
    return writtenReply(warnings);
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

const createdSecretId = answers.data(
  object({ secret_id: string, secret_id_accessor: string, secret_id_num_uses: integer, secret_id_ttl: integer }),
);

const createSecretId = (takes: typeof secretIdFields & { readonly secret_id?: ReturnType<typeof text> }): MethodHandler =>
  methodHandler({
    about: 'Create a secret ID for the role',
    takes: { name, ...takes },
    answers: createdSecretId,
    run: async ({ services, mount }, { values, warnings, ...call }) => {
      const given = 'secret_id' in takes ? values.secret_id : undefined;
      if ('secret_id' in takes && !given) throw new RequestError('invalid_request', 'missing secret_id');
      const { secretId, secret } = await services.logins.approle.createSecretId(mount, nameIn(call), {
        ...propertiesIn(secretIdFields, values),
        secretId: given,
        meta: metadataOf(values.metadata),
      });
      const data = {
        secret_id: secretId,
        secret_id_accessor: secret.accessor,
        secret_id_num_uses: secret.numUses,
        secret_id_ttl: secret.ttlS,
      };
      return dataReply(data, warnings);
    },
  });

const randomSecretId = createSecretId(secretIdFields);
const customSecretId = createSecretId({ ...secretIdFields, secret_id: credential('Secret ID to use', { required: true }) });

const listSecretIds = methodHandler({
  about: 'List accessors of secret IDs',
  takes: { name },
  answers: answers.names,
  run: async ({ services, mount }, call) => namesReply(await services.logins.approle.secretIdAccessors(mount, nameIn(call))),
});

const secretJson = (secret: SecretId): object => ({
  secret_id_accessor: secret.accessor,
  cidr_list: secret.cidrs,
  token_bound_cidrs: secret.tokenBoundCidrs,
  creation_time: new Date(secret.createdMs).toISOString(),
  expiration_time: secret.expiresMs === 0 ? '0001-01-01T00:00:00Z' : new Date(secret.expiresMs).toISOString(),
  secret_id_num_uses: secret.usesLeft,
  secret_id_ttl: secret.ttlS,
  metadata: secret.meta,
});

const secretSchema = object({
  secret_id_accessor: string,
  cidr_list: list(string),
  token_bound_cidrs: list(string),
  creation_time: time,
  expiration_time: time,
  secret_id_num_uses: integer,
  secret_id_ttl: integer,
  metadata: map(string),
});

type SecretName = { readonly secretId: string } | { readonly accessor: string };

/** The two ways to identify a secret ID, by the name of the field in the body. */
const waysToName = {
  secret_id: (given: string): SecretName => ({ secretId: given }),
  secret_id_accessor: (given: string): SecretName => ({ accessor: given }),
};
type Way = keyof typeof waysToName;

const wayFields = (way: Way) => ({
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
    answers: answers.data(secretSchema),
    run: async ({ services, mount }, { values, ...call }) => {
      const secret = await services.logins.approle.findSecretId(mount, nameIn(call), secretNamed(way, values[way]));
      return dataReply(secretJson(found(secret)));
    },
  });

const destroySecretId = (way: Way): MethodHandler =>
  methodHandler({
    about: 'Revoke a secret ID',
    takes: wayFields(way),
    answers: answers.written,
    run: async ({ services, mount }, { values, ...call }) => {
      await services.logins.approle.destroySecretId(mount, nameIn(call), secretNamed(way, values[way]));
      return noContentReply;
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
