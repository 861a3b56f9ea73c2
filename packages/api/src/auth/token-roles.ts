import { isTokenRoleType, type TokenRole } from '@transitd/access';
import {
  bool,
  boolean,
  dataReply,
  duration,
  type FieldSchema,
  int,
  integer,
  list as listOf,
  noContentReply,
  object,
  type Reply,
  RequestError,
  string,
  text,
  texts,
  writtenReply,
} from '@transitd/http';
import type { Services } from '@transitd/node';
import * as answers from '../operation/answers.ts';
import {
  type Call,
  type GuardedOperation,
  guarded,
  type OperationDescription,
  pathParam,
  type Route,
  type TypedCall,
} from '../operation/operation.ts';
import { cidrSpellings, tokenTypeSpellings } from '../operation/spellings.ts';
import { cidrList, refuseStrictBinding, strictBinding } from './login-fields.ts';

const tokenRoleOperation = <S extends FieldSchema = Record<never, never>>(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  description: OperationDescription<S>,
  run: (roles: Services['registry']['roles'], call: TypedCall<S>) => Promise<Reply>,
): GuardedOperation =>
  guarded({ name, capability, ...description, run: ({ services }, call) => run(services.registry.roles, call) });

const nameIn = (call: Pick<Call, 'params'>): string => pathParam(call, 'name');
const name = text('Name of the role', { required: true });

/** Returns a role as the peers do: the period and the explicit maximum also under their older names. */
const roleJson = (role: TokenRole): object => ({
  name: role.name,
  allowed_entity_aliases: [],
  allowed_policies: role.allowedPolicies,
  allowed_policies_glob: role.allowedPoliciesGlob,
  disallowed_policies: role.disallowedPolicies,
  disallowed_policies_glob: role.disallowedPoliciesGlob,
  explicit_max_ttl: role.explicitMaxTtlS,
  orphan: role.orphan,
  path_suffix: role.pathSuffix,
  period: role.periodS,
  renewable: role.renewable,
  token_bound_cidrs: role.boundCidrs,
  token_explicit_max_ttl: role.explicitMaxTtlS,
  token_no_default_policy: role.noDefaultPolicy,
  token_num_uses: role.numUses,
  token_period: role.periodS,
  token_type: role.type,
});

const roleSchema = object({
  name: string,
  allowed_entity_aliases: listOf(string),
  allowed_policies: listOf(string),
  allowed_policies_glob: listOf(string),
  disallowed_policies: listOf(string),
  disallowed_policies_glob: listOf(string),
  explicit_max_ttl: integer,
  orphan: boolean,
  path_suffix: string,
  period: integer,
  renewable: boolean,
  token_bound_cidrs: listOf(string),
  token_explicit_max_ttl: integer,
  token_no_default_policy: boolean,
  token_num_uses: integer,
  token_period: integer,
  token_type: string,
});

const read = tokenRoleOperation(
  'token-role-read',
  'read',
  { about: 'Read a role', takes: { name }, answers: answers.data(roleSchema) },
  async (roles, call) => {
    const found = await roles.find(nameIn(call));
    if (found === undefined) throw new RequestError('not_found', '');
    return dataReply(roleJson(found.role));
  },
);

const list = tokenRoleOperation(
  'token-role-list',
  'list',
  { about: 'List role names', answers: answers.names },
  async (roles) => {
    const keys = await roles.list();
    if (keys.length === 0) throw new RequestError('not_found', '');
    return dataReply({ keys });
  },
);

/** Fields of a write. The `token_` names take precedence over their aliases. */
const writeFields = {
  name,
  allowed_policies: texts('Policies that tokens of this role may have, even if the creator does not have them'),
  allowed_policies_glob: texts('Patterns of allowed policies, with `*` at either end'),
  disallowed_policies: texts('Policies that tokens of this role may not have'),
  disallowed_policies_glob: texts('Patterns of disallowed policies, with `*` at either end'),
  orphan: bool('Create tokens without a parent', { initial: false }),
  renewable: bool('Create renewable tokens', { default: true }),
  path_suffix: text('Suffix that is appended to the `path` property of the tokens'),
  period: duration('Alias of `token_period`', { aliasOf: 'token_period' }),
  explicit_max_ttl: duration('Alias of `token_explicit_max_ttl`', { aliasOf: 'token_explicit_max_ttl' }),
  token_period: duration('Period of periodic tokens: each renewal sets the TTL to this value', { initial: 0 }),
  token_explicit_max_ttl: duration('Hard limit on the TTL, which no renewal exceeds', { initial: 0 }),
  token_num_uses: int('Maximum number of uses of a token; 0 for no limit', { min: 0, initial: 0 }),
  token_type: text('Token type', {
    oneOf: ['service', 'batch', 'default-service', 'default-batch'],
    initial: 'default-service',
    spellings: tokenTypeSpellings,
  }),
  token_bound_cidrs: texts('CIDR blocks from which the tokens may be used', { spellings: cidrSpellings }),
  bound_cidrs: texts('Alias of `token_bound_cidrs`', { aliasOf: 'token_bound_cidrs', spellings: cidrSpellings }),
  ...strictBinding,
  token_no_default_policy: bool('Do not add the policy `default`', { initial: false }),
} as const satisfies FieldSchema;

const description = {
  about: 'Create a role, or update the given fields of an existing one',
  takes: writeFields,
  answers: answers.written,
};

const write = tokenRoleOperation('token-role-write', 'update', description, async (roles, { values, warnings, ...call }) => {
  refuseStrictBinding(values);
  const type = values.token_type === '' ? 'default-service' : values.token_type;
  if (type !== undefined && !isTokenRoleType(type))
    throw new RequestError(
      'invalid_request',
      'invalid token_type, expected "service", "batch", "default-service" or "default-batch"',
    );
  await roles.write(nameIn(call), {
    allowedPolicies: values.allowed_policies,
    allowedPoliciesGlob: values.allowed_policies_glob,
    disallowedPolicies: values.disallowed_policies,
    disallowedPoliciesGlob: values.disallowed_policies_glob,
    orphan: values.orphan,
    renewable: values.renewable,
    pathSuffix: values.path_suffix,
    periodS: values.token_period ?? values.period,
    explicitMaxTtlS: values.token_explicit_max_ttl ?? values.explicit_max_ttl,
    numUses: values.token_num_uses,
    type,
    boundCidrs: cidrList(values.token_bound_cidrs ?? values.bound_cidrs),
    noDefaultPolicy: values.token_no_default_policy,
  });
  return writtenReply(warnings);
});

const remove = tokenRoleOperation(
  'token-role-delete',
  'delete',
  { about: 'Delete a role', takes: { name }, answers: answers.written },
  async (roles, call) => {
    await roles.delete(nameIn(call));
    return noContentReply;
  },
);

/** Routes of token roles, which hold settings for the tokens created with them. */
export const tokenRoleRoutes: readonly Route[] = [
  { path: 'auth/token/roles', operations: { LIST: list } },
  { path: 'auth/token/roles/:name', operations: { GET: read, POST: write, DELETE: remove } },
];
