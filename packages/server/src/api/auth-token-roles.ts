import { isTokenRoleType, type TokenRole } from '@transitd/access';
import { dataReply, noContent, writtenReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import { textList } from '../http/text-list.ts';
import type { Service } from '../node/service.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

function operation(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  run: (roles: Service['registry']['roles'], call: Call) => Promise<Reply>,
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    run: async ({ service }, call) => {
      return run(service.registry.roles, call);
    },
  };
}

const nameIn = ({ params }: Call): string => params['name'] ?? '';

const roleJson = (role: TokenRole): string =>
  JSON.stringify({
    name: role.name,
    allowed_entity_aliases: [],
    allowed_policies: role.allowedPolicies,
    allowed_policies_glob: role.allowedPoliciesGlob,
    disallowed_policies: role.disallowedPolicies,
    disallowed_policies_glob: role.disallowedPoliciesGlob,
    orphan: role.orphan,
    path_suffix: role.pathSuffix,
    renewable: role.renewable,
    token_bound_cidrs: role.boundCidrs,
    token_explicit_max_ttl: role.explicitMaxTtlS,
    token_no_default_policy: role.noDefaultPolicy,
    token_num_uses: role.numUses,
    token_period: role.periodS,
    token_type: role.type,
  });

const read = operation('token-role-read', 'read', async (roles, call) => {
  const found = await roles.find(nameIn(call));
  if (found === undefined) throw new RequestError('not_found', '');
  return dataReply(roleJson(found.role));
});

const list = operation('token-role-list', 'list', async (roles) => {
  const keys = await roles.list();
  if (keys.length === 0) throw new RequestError('not_found', '');
  return dataReply(JSON.stringify({ keys }));
});

/** `period` and `explicit_max_ttl` are older names, which the newer ones go before. */
const write = operation('token-role-write', 'update', async (roles, call) => {
  const { values, warnings } = fields(
    {
      name: 'string',
      allowed_policies: 'any',
      allowed_policies_glob: 'any',
      disallowed_policies: 'any',
      disallowed_policies_glob: 'any',
      orphan: 'bool',
      renewable: 'bool',
      path_suffix: 'string',
      period: 'duration',
      explicit_max_ttl: 'duration',
      token_period: 'duration',
      token_explicit_max_ttl: 'duration',
      token_num_uses: 'int',
      token_type: 'string',
      token_bound_cidrs: 'any',
      token_no_default_policy: 'bool',
    },
    call.body,
    call.params,
  );
  const type = values.token_type === '' ? 'default-service' : values.token_type;
  if (type !== undefined && !isTokenRoleType(type))
    throw new RequestError(
      'invalid_request',
      'invalid token_type, expected "service", "batch", "default-service" or "default-batch"',
    );
  await roles.write(nameIn(call), {
    allowedPolicies: textList('allowed_policies', values.allowed_policies),
    allowedPoliciesGlob: textList('allowed_policies_glob', values.allowed_policies_glob),
    disallowedPolicies: textList('disallowed_policies', values.disallowed_policies),
    disallowedPoliciesGlob: textList('disallowed_policies_glob', values.disallowed_policies_glob),
    orphan: values.orphan,
    renewable: values.renewable,
    pathSuffix: values.path_suffix,
    periodS: values.token_period ?? values.period,
    explicitMaxTtlS: values.token_explicit_max_ttl ?? values.explicit_max_ttl,
    numUses: values.token_num_uses,
    type,
    boundCidrs: textList('token_bound_cidrs', values.token_bound_cidrs)?.filter((cidr) => cidr !== ''),
    noDefaultPolicy: values.token_no_default_policy,
  });
  return writtenReply(warnings);
});

const remove = operation('token-role-delete', 'delete', async (roles, call) => {
  await roles.delete(nameIn(call));
  return noContent;
});

/** Token roles: what tokens get that are made by one. */
export const tokenRoleRoutes: readonly Route[] = [
  { path: 'auth/token/roles', operations: { LIST: list } },
  { path: 'auth/token/roles/:name', operations: { GET: read, POST: write, DELETE: remove } },
];
