import { isTokenRoleType, type TokenRole } from '@transitd/access';
import {
  bool,
  duration,
  type FieldSchema,
  int,
  integer,
  list as listOf,
  object,
  RequestError,
  string,
  text,
  texts,
} from '@transitd/http';
import { memberSchemas, membersIn, propertiesIn, sorted } from '../operation/kept-fields.ts';
import { token_strictly_bind_ip } from '../operation/login-fields.ts';
import type { Context, Route } from '../operation/operation.ts';
import { recordOperations, recordRoutes } from '../operation/records.ts';
import { cidrs, tokenTypeSpellings } from '../operation/spellings.ts';

/** Fields of a role. The `token_` names take precedence over their aliases. */
const roleFields = {
  allowed_policies: texts('Policies that tokens of this role may have, even if the creator does not have them'),
  allowed_policies_glob: texts('Patterns of allowed policies, with `*` at either end'),
  disallowed_policies: texts('Policies that tokens of this role may not have'),
  disallowed_policies_glob: texts('Patterns of disallowed policies, with `*` at either end'),
  orphan: bool('Create tokens without a parent', { initial: false }),
  renewable: bool('Create renewable tokens', { default: true }),
  path_suffix: text('Suffix that is appended to the `path` property of the tokens'),
  period: duration('Alias of `token_period`', { aliasOf: 'token_period' }),
  explicit_max_ttl: duration('Alias of `token_explicit_max_ttl`', { aliasOf: 'token_explicit_max_ttl' }),
  token_period: duration('Period of periodic tokens: each renewal sets the TTL to this value', {
    initial: 0,
    property: 'periodS',
  }),
  token_explicit_max_ttl: duration('Hard limit on the TTL, which no renewal exceeds', {
    initial: 0,
    property: 'explicitMaxTtlS',
  }),
  token_num_uses: int('Maximum number of uses of a token; 0 for no limit', { min: 0, initial: 0, property: 'numUses' }),
  token_type: text('Token type', {
    oneOf: ['service', 'batch', 'default-service', 'default-batch'],
    initial: 'default-service',
    spellings: tokenTypeSpellings,
    property: 'type',
  }),
  token_bound_cidrs: cidrs('CIDR blocks from which the tokens may be used', { property: 'boundCidrs' }),
  bound_cidrs: cidrs('Alias of `token_bound_cidrs`', { aliasOf: 'token_bound_cidrs' }),
  token_strictly_bind_ip,
  token_no_default_policy: bool('Do not add the policy `default`', { initial: false, property: 'noDefaultPolicy' }),
} as const satisfies FieldSchema;

/** Returns a role as the peers do: the period and the explicit maximum also under their older names. */
const roleJson = (role: TokenRole): object => {
  const old = { explicit_max_ttl: role.explicitMaxTtlS, period: role.periodS };
  return { name: role.name, ...sorted({ allowed_entity_aliases: [], ...old, ...membersIn(roleFields, role) }) };
};

const oldSchema = { explicit_max_ttl: integer, period: integer };
const roleSchema = object({
  name: string,
  ...sorted({ allowed_entity_aliases: listOf(string), ...oldSchema, ...memberSchemas(roleFields) }),
});

const roles = recordOperations<Context, typeof roleFields>({
  noun: 'role',
  name: 'Name of the role',
  takes: roleFields,
  shown: roleSchema,
  find: async ({ services }, name) => {
    const found = await services.registry.roles.find(name);
    return found && roleJson(found.role);
  },
  list: ({ services }) => services.registry.roles.list(),
  write: ({ services }, name, values) => {
    const type = values.token_type === '' ? 'default-service' : values.token_type;
    if (type !== undefined && !isTokenRoleType(type))
      throw new RequestError(
        'invalid_request',
        'invalid token_type, expected "service", "batch", "default-service" or "default-batch"',
      );
    return services.registry.roles.write(name, { ...propertiesIn(roleFields, values), type });
  },
  delete: ({ services }, name) => services.registry.roles.delete(name),
});

/** Routes of token roles, which hold settings for the tokens created with them. */
export const tokenRoleRoutes: readonly Route[] = recordRoutes('auth/token/roles', 'token-role', roles);
