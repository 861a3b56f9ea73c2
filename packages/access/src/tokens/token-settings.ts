import { checkCidrs } from '../values/cidr.ts';
import { invalidRequest } from '../values/errors.ts';
import { given } from '../values/given.ts';
import type { Lifetime, TokenLimits } from './token-lifetime.ts';
import { lifetimeOf } from './token-lifetime.ts';
import { policyNames } from './token-policies.ts';

/** `default` is a service token. */
type LoginTokenType = 'default' | 'service' | 'batch';

/** Settings of a user or role for the tokens of its logins. Times are in seconds; 0 and empty values set nothing. */
export interface TokenSettings {
  readonly policies: readonly string[];
  readonly ttlS: number;
  readonly maxTtlS: number;
  readonly explicitMaxTtlS: number;
  readonly periodS: number;
  readonly numUses: number;
  readonly boundCidrs: readonly string[];
  readonly noDefaultPolicy: boolean;
  readonly type: LoginTokenType;
}

/** Fields to change; absent fields keep their values. */
export type TokenSettingsChange = { readonly [Name in keyof TokenSettings]?: TokenSettings[Name] | undefined };

export const newTokenSettings: TokenSettings = {
  policies: [],
  ttlS: 0,
  maxTtlS: 0,
  explicitMaxTtlS: 0,
  periodS: 0,
  numUses: 0,
  boundCidrs: [],
  noDefaultPolicy: false,
  type: 'default',
};

const types: readonly string[] = ['default', 'service', 'batch'] satisfies LoginTokenType[];

export const isLoginTokenType = (text: string): text is LoginTokenType => types.includes(text);

/** Returns settings after a change. @throws AccessError `invalid_request` */
export function changedSettings(present: TokenSettings, change: TokenSettingsChange): TokenSettings {
  const next: TokenSettings = { ...present, ...given(change) };
  const policies = policyNames(next.policies);
  if (policies.includes('root')) throw invalidRequest('auth methods cannot create root tokens');
  if (next.numUses < 0) throw invalidRequest("'token_num_uses' cannot be negative");
  if (next.maxTtlS !== 0 && next.ttlS > next.maxTtlS) throw invalidRequest("'token_ttl' cannot be greater than 'token_max_ttl'");
  if (next.type === 'batch' && (next.periodS > 0 || next.explicitMaxTtlS > 0 || next.numUses > 0))
    throw invalidRequest("'token_type' cannot be 'batch' with a period, an explicit max TTL or a number of uses");
  return { ...next, policies, boundCidrs: checkCidrs('token_bound_cidrs', next.boundCidrs) };
}

/** Returns the lifetime of a login's token, limited by its settings, the auth method and the node. */
export function loginLifetime(
  { ttlS, maxTtlS, explicitMaxTtlS, periodS }: TokenSettings,
  mount: TokenLimits,
  node: TokenLimits,
): Lifetime & { readonly maxTtlS: number } {
  const longest = [maxTtlS, mount.maxTtlS].filter((seconds) => seconds > 0);
  const most = Math.min(node.maxTtlS, ...longest);
  const defaultTtlS = Math.min(mount.defaultTtlS > 0 ? mount.defaultTtlS : node.defaultTtlS, most);
  return {
    ...lifetimeOf({ ttlS, explicitMaxTtlS, periodS }, { defaultTtlS, maxTtlS: most }),
    maxTtlS: longest.length === 0 ? 0 : most,
  };
}
