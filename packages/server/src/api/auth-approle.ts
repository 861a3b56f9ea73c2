import type { SecretId } from '@transitd/access';
import { dataReply, noContent, writtenReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { Body, JsonValue } from '../http/json.ts';
import { textsByName } from '../http/text-list.ts';
import { type MethodContext, type MethodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { cidrList, tokenFields, tokenSettingsJson, tokenSettingsOf } from './login-fields.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

const nameIn = ({ params }: Call): string => params['name'] ?? '';
const named = ({ params }: Call): Readonly<Record<string, string>> => ({ name: params['name'] ?? '' });

/** Roles of the two kinds of methods that have them lie at the same paths. */
export const writeAppRole: MethodHandler = async ({ service, mount }, call) => {
  const { values, warnings } = fields(
    {
      name: 'string',
      role_id: 'string',
      bind_secret_id: 'bool',
      secret_id_bound_cidrs: 'any',
      secret_id_num_uses: 'int',
      secret_id_ttl: 'duration',
      ...tokenFields,
    },
    call.body,
    named(call),
  );
  await service.logins.approle.write(mount, nameIn(call), {
    roleId: values.role_id,
    bindSecretId: values.bind_secret_id,
    secretIdBoundCidrs: cidrList('secret_id_bound_cidrs', values.secret_id_bound_cidrs),
    secretIdNumUses: values.secret_id_num_uses,
    secretIdTtlS: values.secret_id_ttl,
    token: tokenSettingsOf(values),
  });
  return writtenReply(warnings);
};

async function requireRole({ service, mount }: MethodContext, call: Call) {
  const found = await service.logins.approle.roles.find(mount.id, nameIn(call));
  if (found === undefined) throw new RequestError('not_found', '');
  return found.value;
}

export const readAppRole: MethodHandler = async (context, call) => {
  const role = await requireRole(context, call);
  const data = {
    bind_secret_id: role.bindSecretId,
    local_secret_ids: false,
    secret_id_bound_cidrs: role.secretIdBoundCidrs,
    secret_id_num_uses: role.secretIdNumUses,
    secret_id_ttl: role.secretIdTtlS,
    ...tokenSettingsJson(role.token),
  };
  return dataReply(JSON.stringify(data));
};

export const deleteAppRole: MethodHandler = async ({ service, mount }, call) => {
  await service.logins.approle.delete(mount, nameIn(call));
  return noContent;
};

export const listAppRoles: MethodHandler = async ({ service, mount }) => {
  const keys = await service.logins.approle.roles.list(mount.id);
  if (keys.length === 0) throw new RequestError('not_found', '');
  return dataReply(JSON.stringify({ keys }));
};

const readRoleId: MethodHandler = async (context, call) =>
  dataReply(JSON.stringify({ role_id: (await requireRole(context, call)).roleId }));

const writeRoleId: MethodHandler = async (context, call) => {
  const { values, warnings } = fields({ name: 'string', role_id: 'string' }, call.body, named(call));
  await requireRole(context, call);
  if (values.role_id === undefined) throw new RequestError('invalid_request', 'missing role_id');
  await context.service.logins.approle.write(context.mount, nameIn(call), { roleId: values.role_id, token: {} });
  return writtenReply(warnings);
};

/** Metadata comes as an object, or as the text of one. */
function metadataOf(value: JsonValue | undefined): Readonly<Record<string, string>> {
  if (typeof value !== 'string') return textsByName('metadata', value);
  if (value === '') return {};
  try {
    return textsByName('metadata', JSON.parse(value) as JsonValue);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError('invalid_field', 'Field validation failed: metadata is a JSON object of texts');
  }
}

const createSecretId: MethodHandler = async ({ service, mount }, call) => {
  const isCustom = call.path.endsWith('/custom-secret-id');
  const { values, warnings } = fields(
    {
      name: 'string',
      metadata: 'any',
      cidr_list: 'any',
      token_bound_cidrs: 'any',
      num_uses: 'int',
      ttl: 'duration',
      ...(isCustom && { secret_id: 'string' as const }),
    },
    call.body,
    named(call),
  );
  const given = (values as { readonly secret_id?: string | undefined }).secret_id;
  if (isCustom && (given === undefined || given === '')) throw new RequestError('invalid_request', 'missing secret_id');
  const { secretId, secret } = await service.logins.approle.createSecretId(mount, nameIn(call), {
    secretId: given,
    cidrs: cidrList('cidr_list', values.cidr_list),
    tokenBoundCidrs: cidrList('token_bound_cidrs', values.token_bound_cidrs),
    numUses: values.num_uses,
    ttlS: values.ttl,
    meta: metadataOf(values.metadata),
  });
  const data = {
    secret_id: secretId,
    secret_id_accessor: secret.accessor,
    secret_id_num_uses: secret.numUses,
    secret_id_ttl: secret.ttlS,
  };
  return dataReply(JSON.stringify(data), warnings);
};

const listSecretIds: MethodHandler = async ({ service, mount }, call) => {
  const keys = await service.logins.approle.secretIdAccessors(mount, nameIn(call));
  if (keys.length === 0) throw new RequestError('not_found', '');
  return dataReply(JSON.stringify({ keys }));
};

function secretNamed(call: Call): { readonly secretId: string } | { readonly accessor: string } {
  const byAccessor = call.path.includes('/secret-id-accessor/');
  const member = byAccessor ? 'secret_id_accessor' : 'secret_id';
  const given = textIn(call.body, member);
  return byAccessor ? { accessor: given } : { secretId: given };
}

function textIn(body: Body, member: string): string {
  const { [member]: value } = fields({ [member]: 'string' }, body).values;
  if (value === undefined || value === '') throw new RequestError('invalid_request', `missing ${member}`);
  return value;
}

const secretJson = (secret: SecretId): string =>
  JSON.stringify({
    secret_id_accessor: secret.accessor,
    cidr_list: secret.cidrs,
    token_bound_cidrs: secret.tokenBoundCidrs,
    creation_time: new Date(secret.createdMs).toISOString(),
    expiration_time: secret.expiresMs === 0 ? '0001-01-01T00:00:00Z' : new Date(secret.expiresMs).toISOString(),
    secret_id_num_uses: secret.usesLeft,
    secret_id_ttl: secret.ttlS,
    metadata: secret.meta,
  });

const lookUpSecretId: MethodHandler = async ({ service, mount }, call) => {
  const found = await service.logins.approle.findSecretId(mount, nameIn(call), secretNamed(call));
  if (found === undefined) throw new RequestError('not_found', '');
  return dataReply(secretJson(found));
};

const destroySecretId: MethodHandler = async ({ service, mount }, call) => {
  await service.logins.approle.destroySecretId(mount, nameIn(call), secretNamed(call));
  return noContent;
};

const one = (
  name: string,
  capability: 'read' | 'update' | 'delete' | 'list',
  approle: MethodHandler,
  cluster: Pick<GuardedOperation, 'where' | 'adds'> = {},
) => methodOperation(name, capability, { approle }, cluster);

const lookUp = { POST: one('approle-secret-id-lookup', 'update', lookUpSecretId, { where: 'replica' }) };
const destroy = {
  POST: one('approle-secret-id-destroy', 'update', destroySecretId),
  DELETE: one('approle-secret-id-destroy', 'delete', destroySecretId),
};

/** Role ids and secret ids of `approle`; its roles and its login share their paths with `jwt`. */
export const approleRoutes: readonly Route[] = [
  methodRoute('role/:name/role-id', {
    GET: one('approle-role-id', 'read', readRoleId),
    POST: one('approle-role-id-write', 'update', writeRoleId),
  }),
  methodRoute('role/:name/secret-id', {
    POST: one('approle-secret-id', 'update', createSecretId, { adds: true }),
    LIST: one('approle-secret-id-list', 'list', listSecretIds),
  }),
  methodRoute('role/:name/custom-secret-id', { POST: one('approle-secret-id', 'update', createSecretId, { adds: true }) }),
  methodRoute('role/:name/secret-id/lookup', lookUp),
  methodRoute('role/:name/secret-id/destroy', destroy),
  methodRoute('role/:name/secret-id-accessor/lookup', lookUp),
  methodRoute('role/:name/secret-id-accessor/destroy', destroy),
];
