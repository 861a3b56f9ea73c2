import {
  type InertSettings,
  invalidRequest,
  newTokenSettings,
  policyNames,
  type RoleChange,
  type TokenSettings,
} from '@transitd/access';
import { any, anything, bool, duration, type FieldSchema, list, map, string, text, textMap, texts } from '@transitd/http';
import { newRecord, type RecordOf } from '../../operation/kept-fields.ts';

/** Fields of a role itself; `role_type` is always the same, and the settings of its tokens are `tokenFields`. */
export const ownFields = {
  bound_audiences: texts('Accepted audiences: `aud` must contain one of them', { dropsEmpty: true, property: 'audiences' }),
  bound_subject: text('Required `sub` claim', { property: 'subject' }),
  user_claim: text('Claim that identifies the user'),
  user_claim_json_pointer: bool('Whether `user_claim` may be a JSON Pointer; the names of other claims always may', {
    default: false,
  }),
  bound_claims: any('Required claims: for each claim, a value or a list of accepted values', { shape: map(anything) }),
  bound_claims_type: text('How the values of `bound_claims` are compared; in a `glob`, each `*` matches any text', {
    oneOf: ['string', 'glob'],
    default: 'string',
  }),
  claim_mappings: textMap('Claims to copy into the token metadata: a metadata name for each claim'),
  groups_claim: text('Claim that lists the groups of the user; a token without it is refused'),
  group_policies: any('Additional policies for each group', { shape: map(list(string)) }),
  clock_skew_leeway: duration('Tolerated clock skew: 0 means a minute, -1 none', {
    signed: true,
    default: 0,
    property: 'leewayS',
  }),
  max_age: duration('Requires the claim `auth_time`, and that it is not longer ago; 0 for no requirement'),
} as const satisfies FieldSchema;

/** Required claims, each with its allowed values. */
export type BoundClaims = Readonly<Record<string, readonly (string | number | boolean)[]>>;

export interface JwtRole extends RecordOf<typeof ownFields> {
  readonly boundClaims: BoundClaims;
  readonly boundClaimsType: 'string' | 'glob';
  /** Policies by group. */
  readonly groupPolicies: Readonly<Record<string, readonly string[]>>;
  readonly inert: InertSettings;
  readonly token: TokenSettings;
}

export type JwtRoleChange = RoleChange<JwtRole>;

export const newRole: JwtRole = {
  ...newRecord(ownFields),
  ...{ boundClaims: {}, boundClaimsType: 'string', groupPolicies: {} },
  ...{ inert: {}, token: newTokenSettings },
};

/** Every login compares them with the claims of its token. */
const boundClaimsCharsMax = 64 * 1024;
const leewaySMax = 300;

/** @throws AccessError `invalid_request` */
export function checkRole({ audiences, userClaim, boundClaims, boundClaimsType, groupPolicies, leewayS }: JwtRole): void {
  if (audiences.length === 0) throw invalidRequest('bound_audiences must be set');
  if (userClaim === '') throw invalidRequest('user_claim must be set');
  if (
    boundClaimsType === 'glob' &&
    !Object.values(boundClaims)
      .flat()
      .every((value) => typeof value === 'string')
  )
    throw invalidRequest('the values of bound_claims must be strings if bound_claims_type is "glob"');
  if (JSON.stringify(boundClaims).length > boundClaimsCharsMax)
    throw invalidRequest(`bound_claims must have at most ${boundClaimsCharsMax} characters as JSON`);
  if (leewayS > leewaySMax) throw invalidRequest(`clock_skew_leeway is at most ${leewaySMax}s`);
  for (const policies of Object.values(groupPolicies))
    if (policyNames(policies).includes('root')) throw invalidRequest('auth methods cannot create root tokens');
}
