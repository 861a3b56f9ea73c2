import { policyName } from '../policy/policies.ts';
import { checkCidrs } from '../values/cidr.ts';
import { invalidRequest } from '../values/errors.ts';
import { given } from '../values/given.ts';
import { decodeJson, encodeJson } from '../values/json-record.ts';

/** Type of the tokens of a role. With `default-…` a request may name the other type. */
type TokenRoleType = 'default-service' | 'default-batch' | 'service' | 'batch';

/** Settings and policy restrictions of the tokens that are created with a role. Empty lists restrict nothing; 0 sets nothing. */
export interface TokenRole {
  readonly name: string;
  readonly allowedPolicies: readonly string[];
  /** Policy names with `*` at one or both ends. */
  readonly allowedPoliciesGlob: readonly string[];
  readonly disallowedPolicies: readonly string[];
  readonly disallowedPoliciesGlob: readonly string[];
  readonly orphan: boolean;
  readonly renewable: boolean;
  /** Appended to the path in the records of its tokens. */
  readonly pathSuffix: string;
  /** Seconds, like `explicitMaxTtlS`. */
  readonly periodS: number;
  readonly explicitMaxTtlS: number;
  readonly numUses: number;
  readonly type: TokenRoleType;
  readonly boundCidrs: readonly string[];
  readonly noDefaultPolicy: boolean;
}

/** Fields to change; absent fields keep their values. */
export type TokenRoleChange = { readonly [Name in keyof Omit<TokenRole, 'name'>]?: TokenRole[Name] | undefined };

const newRole = (name: string): TokenRole => ({
  name,
  allowedPolicies: [],
  allowedPoliciesGlob: [],
  disallowedPolicies: [],
  disallowedPoliciesGlob: [],
  orphan: false,
  renewable: true,
  pathSuffix: '',
  periodS: 0,
  explicitMaxTtlS: 0,
  numUses: 0,
  type: 'default-service',
  boundCidrs: [],
  noDefaultPolicy: false,
});

const types: readonly string[] = ['default-service', 'default-batch', 'service', 'batch'] satisfies TokenRoleType[];

export const isTokenRoleType = (text: string): text is TokenRoleType => types.includes(text);

/** Returns a role after a change, or a new role. @throws AccessError `invalid_request` */
export function changedTokenRole(name: string, present: TokenRole | undefined, change: TokenRoleChange): TokenRole {
  const role: TokenRole = { ...(present ?? newRole(name)), ...given(change) };
  if (!/^(?:|\w[\w-]+\w)$/.test(role.pathSuffix))
    throw invalidRequest('path_suffix must have at least three letters, digits, "_" or "-", and must not begin or end with "-"');
  if (role.numUses < 0) throw invalidRequest("'token_num_uses' cannot be negative");
  if (role.type === 'batch' && (role.periodS > 0 || role.explicitMaxTtlS > 0 || role.numUses > 0))
    throw invalidRequest("'token_type' cannot be 'batch' for a role with a period, an explicit max TTL or a number of uses");
  if (role.type === 'default-batch' && role.numUses > 0)
    throw invalidRequest("'token_type' cannot be 'default-batch' for a role with a number of uses");
  return {
    ...role,
    allowedPolicies: restricting(role.allowedPolicies, names),
    disallowedPolicies: names(role.disallowedPolicies),
    allowedPoliciesGlob: restricting(role.allowedPoliciesGlob, globs),
    disallowedPoliciesGlob: globs(role.disallowedPoliciesGlob),
    boundCidrs: checkCidrs('token_bound_cidrs', role.boundCidrs),
  };
}

const withText = (texts: readonly string[]): string[] => texts.map((text) => text.trim()).filter((text) => text !== '');
const names = (texts: readonly string[]): string[] => [...new Set(withText(texts).map(policyName))].sort();
const globs = (texts: readonly string[]): string[] => [...new Set(withText(texts).map((text) => text.toLowerCase()))].sort();

/** Keeps a list of blank names, which allows no policy. An empty list would restrict nothing. */
const restricting = (texts: readonly string[], read: (texts: readonly string[]) => string[]): string[] =>
  texts.length > 0 && withText(texts).length === 0 ? [''] : read(texts);

export const encodeTokenRole = (role: TokenRole): Buffer => encodeJson(role);

/** @throws AccessError `record_unreadable` */
export const decodeTokenRole = (stored: Uint8Array): TokenRole => decodeJson(stored, newRole(''));
