export { type Access, type AccessOptions, closeAccess, openAccess } from './access.ts';
export type { AppRole, AppRoleChange } from './auth/approle-role.ts';
export type { BoundClaims, JwtConfig, JwtRole } from './auth/jwt.ts';
export type { KeySources } from './auth/jwt-keys.ts';
export type { Login } from './auth/login.ts';
export type { Logins } from './auth/logins.ts';
export type { SecretId } from './auth/secret-id.ts';
export { type AuthMount, authTypes, newAuthMount, splitsAsAuthPath } from './mounts/auth-mount.ts';
export type { AuthMounts, AuthTuning, StoredMount } from './mounts/auth-mounts.ts';
export type { NamePlace } from './policy/acl.ts';
export { type Capability, isCapability } from './policy/capability.ts';
export type { Meaning, Parameters, ParameterValue } from './policy/parameter-values.ts';
export type { ParameterReading } from './policy/parameters.ts';
export { canonicalPolicyName, Policies, policyName, rulesPerTokenMax } from './policy/policies.ts';
export { plainPolicyText, policyPermits } from './policy/policy-text.ts';
export { type Quota, type QuotaChange, quotaMatches } from './quota/quota.ts';
export type { Allowance, Quotas } from './quota/quotas.ts';
export { admission, type Bucket, type Rate } from './quota/token-bucket.ts';
export {
  allows,
  allowsItems,
  capabilitiesOf,
  hasDenials,
  hasParameterRules,
  isDenied,
  isNameDenied,
  isUseDenied,
  type NamedRule,
  type Principal,
  pageAllowed,
  rulesOf,
} from './tokens/principal.ts';
export { type InitialAccess, initialAccess } from './tokens/root-token.ts';
export { newToken } from './tokens/token.ts';
export { type TokenLimits, ttlOf } from './tokens/token-lifetime.ts';
export type { TokenRecord } from './tokens/token-record.ts';
export { type Granted, type TokenName, TokenRegistry, type TokenRegistryOptions } from './tokens/token-registry.ts';
export type { TokenRequest } from './tokens/token-request.ts';
export { isTokenRoleType, type TokenRole, type TokenRoleChange } from './tokens/token-role.ts';
export { isLoginTokenType, type TokenSettings, type TokenSettingsChange } from './tokens/token-settings.ts';
export { Tokens, type TokensOptions } from './tokens/tokens.ts';
export type { WrapInfo, Wrapped, Wrapping } from './tokens/wrapping.ts';
export { type ClockDispute, type ClockDisputes, noDisputes, type TimeSource } from './values/clock-dispute.ts';
export { DisputedDates } from './values/disputed-dates.ts';
export { AccessError, type AccessErrorCode, RateLimited } from './values/errors.ts';
export { changedInert, type InertSettings } from './values/inert-settings.ts';
export { isRoleName, loginName } from './values/names.ts';
export { didYouMean } from './values/nearest-name.ts';
export { canonicalUrl } from './values/url.ts';
