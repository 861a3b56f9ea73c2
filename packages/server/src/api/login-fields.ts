import { isLoginTokenType, type TokenSettings, type TokenSettingsChange } from '@transitd/access';
import { RequestError } from '../http/error-answer.ts';
import type { FieldSchema, Fields } from '../http/fields.ts';
import { textList } from '../http/text-list.ts';

/** What every user and role says of the tokens of its logins; `policies`, `ttl` and the like are older names, which the newer ones go before. */
export const tokenFields = {
  token_policies: 'any',
  policies: 'any',
  token_ttl: 'duration',
  ttl: 'duration',
  token_max_ttl: 'duration',
  max_ttl: 'duration',
  token_explicit_max_ttl: 'duration',
  token_period: 'duration',
  period: 'duration',
  token_num_uses: 'int',
  token_bound_cidrs: 'any',
  token_no_default_policy: 'bool',
  token_type: 'string',
} as const satisfies FieldSchema;

/** Blocks of addresses; an empty text is none. */
export const cidrList = (...field: Parameters<typeof textList>): readonly string[] | undefined =>
  textList(...field)?.filter((cidr) => cidr !== '');

/** @throws RequestError */
export function tokenSettingsOf(values: Fields<typeof tokenFields>['values']): TokenSettingsChange {
  const type = values.token_type === '' || values.token_type === 'default-service' ? 'default' : values.token_type;
  if (type !== undefined && !isLoginTokenType(type))
    throw new RequestError('invalid_request', 'invalid token_type, expected "default", "service" or "batch"');
  return {
    policies: textList('token_policies', values.token_policies) ?? textList('policies', values.policies),
    ttlS: values.token_ttl ?? values.ttl,
    maxTtlS: values.token_max_ttl ?? values.max_ttl,
    explicitMaxTtlS: values.token_explicit_max_ttl,
    periodS: values.token_period ?? values.period,
    numUses: values.token_num_uses,
    boundCidrs: cidrList('token_bound_cidrs', values.token_bound_cidrs),
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
