import { isLoginTokenType, type TokenSettings, type TokenSettingsChange } from '@transitd/access';
import { bool, duration, type FieldSchema, type Fields, int, RequestError, text, texts, unsupportedField } from '@transitd/http';
import { memberSchemas, membersIn, propertiesIn, sorted } from './kept-fields.ts';
import { cidrs, tokenTypeSpellings } from './spellings.ts';

/** A restriction of OpenBao that does not exist here. If it were ignored, tokens could be used from more addresses than intended. */
export const token_strictly_bind_ip = unsupportedField('bool', 'set token_bound_cidrs to the addresses');

/** Token settings of users and roles. The `token_` names take precedence over their aliases. */
export const tokenFields = {
  token_policies: texts('Policies of the tokens', { property: 'policies' }),
  policies: texts('Alias of `token_policies`', { aliasOf: 'token_policies' }),
  token_ttl: duration('Initial TTL of a token; 0 uses the default of the node', { initial: 0, property: 'ttlS' }),
  ttl: duration('Alias of `token_ttl`', { aliasOf: 'token_ttl' }),
  token_max_ttl: duration('Maximum TTL of a token, renewals included', { initial: 0, property: 'maxTtlS' }),
  max_ttl: duration('Alias of `token_max_ttl`', { aliasOf: 'token_max_ttl' }),
  token_explicit_max_ttl: duration('Hard limit on the TTL, which no renewal exceeds', {
    initial: 0,
    property: 'explicitMaxTtlS',
  }),
  token_period: duration('Period of a periodic token: each renewal sets its TTL to this value', {
    initial: 0,
    property: 'periodS',
  }),
  period: duration('Alias of `token_period`', { aliasOf: 'token_period' }),
  token_num_uses: int('Maximum number of uses of a token; 0 for no limit', { min: 0, initial: 0, property: 'numUses' }),
  num_uses: int('Alias of `token_num_uses`', { min: 0, aliasOf: 'token_num_uses' }),
  token_bound_cidrs: cidrs('CIDR blocks from which a token may be used', { property: 'boundCidrs' }),
  bound_cidrs: cidrs('Alias of `token_bound_cidrs`', { aliasOf: 'token_bound_cidrs' }),
  token_strictly_bind_ip,
  token_no_default_policy: bool('Do not add the policy `default`', { initial: false, property: 'noDefaultPolicy' }),
  token_type: text('Token type', {
    oneOf: ['default', 'default-service', 'service', 'batch'],
    initial: 'default',
    spellings: tokenTypeSpellings,
    property: 'type',
  }),
} as const satisfies FieldSchema;

/** Returns the token settings that a request changes. @throws RequestError `invalid_request` */
export function tokenSettingsOf(values: Fields<typeof tokenFields>['values']): TokenSettingsChange {
  const type = values.token_type === '' || values.token_type === 'default-service' ? 'default' : values.token_type;
  if (type !== undefined && !isLoginTokenType(type))
    throw new RequestError('invalid_request', 'invalid token_type, expected "default", "service" or "batch"');
  return { ...propertiesIn(tokenFields, values), type };
}

export const tokenSettingsJson = (token: TokenSettings) => sorted(membersIn(tokenFields, token));

/** Schema of `tokenSettingsJson`. */
export const tokenSettingsMembers = sorted(memberSchemas(tokenFields));
