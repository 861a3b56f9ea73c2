import { isLoginTokenType, type TokenSettings, type TokenSettingsChange } from '@transitd/access';
import {
  bool,
  boolean,
  duration,
  type FieldSchema,
  type Fields,
  int,
  integer,
  list,
  RequestError,
  string,
  text,
  texts,
} from '@transitd/http';
import { cidrSpellings, tokenTypeSpellings } from '../operation/spellings.ts';

/** A restriction of OpenBao that does not exist here. If it were ignored, tokens could be used from more addresses than intended. */
export const strictBinding = {
  token_strictly_bind_ip: bool('Not supported: `true` is refused', { default: false }),
} as const satisfies FieldSchema;

/** @throws RequestError `invalid_request` */
export function refuseStrictBinding({ token_strictly_bind_ip: isStrict }: Fields<typeof strictBinding>['values']): void {
  if (isStrict === true)
    throw new RequestError('invalid_request', 'token_strictly_bind_ip is not supported: set token_bound_cidrs to the addresses');
}

/** Token settings of users and roles. The `token_` names take precedence over their aliases. */
export const tokenFields = {
  token_policies: texts('Policies of the tokens'),
  policies: texts('Alias of `token_policies`', { aliasOf: 'token_policies' }),
  token_ttl: duration('Initial TTL of a token; 0 uses the default of the node', { initial: 0 }),
  ttl: duration('Alias of `token_ttl`', { aliasOf: 'token_ttl' }),
  token_max_ttl: duration('Maximum TTL of a token, renewals included', { initial: 0 }),
  max_ttl: duration('Alias of `token_max_ttl`', { aliasOf: 'token_max_ttl' }),
  token_explicit_max_ttl: duration('Hard limit on the TTL, which no renewal exceeds', { initial: 0 }),
  token_period: duration('Period of a periodic token: each renewal sets its TTL to this value', { initial: 0 }),
  period: duration('Alias of `token_period`', { aliasOf: 'token_period' }),
  token_num_uses: int('Maximum number of uses of a token; 0 for no limit', { min: 0, initial: 0 }),
  num_uses: int('Alias of `token_num_uses`', { min: 0, aliasOf: 'token_num_uses' }),
  token_bound_cidrs: texts('CIDR blocks from which a token may be used', { spellings: cidrSpellings }),
  bound_cidrs: texts('Alias of `token_bound_cidrs`', { aliasOf: 'token_bound_cidrs', spellings: cidrSpellings }),
  ...strictBinding,
  token_no_default_policy: bool('Do not add the policy `default`', { initial: false }),
  token_type: text('Token type', {
    oneOf: ['default', 'default-service', 'service', 'batch'],
    initial: 'default',
    spellings: tokenTypeSpellings,
  }),
} as const satisfies FieldSchema;

/** Returns the CIDR blocks, without empty strings. */
export const cidrList = (cidrs: readonly string[] | undefined): readonly string[] | undefined =>
  cidrs?.filter((cidr) => cidr !== '');

/** Returns the token settings that a request changes. @throws RequestError `invalid_request` */
export function tokenSettingsOf(values: Fields<typeof tokenFields>['values']): TokenSettingsChange {
  refuseStrictBinding(values);
  const type = values.token_type === '' || values.token_type === 'default-service' ? 'default' : values.token_type;
  if (type !== undefined && !isLoginTokenType(type))
    throw new RequestError('invalid_request', 'invalid token_type, expected "default", "service" or "batch"');
  return {
    policies: values.token_policies ?? values.policies,
    ttlS: values.token_ttl ?? values.ttl,
    maxTtlS: values.token_max_ttl ?? values.max_ttl,
    explicitMaxTtlS: values.token_explicit_max_ttl,
    periodS: values.token_period ?? values.period,
    numUses: values.token_num_uses ?? values.num_uses,
    boundCidrs: cidrList(values.token_bound_cidrs ?? values.bound_cidrs),
    noDefaultPolicy: values.token_no_default_policy,
    type,
  };
}

export const tokenSettingsJson = (token: TokenSettings): object => ({
  token_bound_cidrs: token.boundCidrs,
  token_explicit_max_ttl: token.explicitMaxTtlS,
  token_max_ttl: token.maxTtlS,
  token_no_default_policy: token.noDefaultPolicy,
  token_num_uses: token.numUses,
  token_period: token.periodS,
  token_policies: token.policies,
  token_ttl: token.ttlS,
  token_type: token.type,
});

/** Schema of `tokenSettingsJson`; durations in seconds. */
export const tokenSettingsMembers = {
  token_bound_cidrs: list(string),
  token_explicit_max_ttl: integer,
  token_max_ttl: integer,
  token_no_default_policy: boolean,
  token_num_uses: integer,
  token_period: integer,
  token_policies: list(string),
  token_ttl: integer,
  token_type: string,
};
