export { type Access, type AccessOptions, closeAccess, openAccess } from './access.ts';
export type { AppRole, AppRoleChange, SecretId } from './auth/approle.ts';
export type { BoundClaims, JwtConfig, JwtRole } from './auth/jwt.ts';
export type { KeySources } from './auth/jwt-keys.ts';
export type { Logins } from './auth/logins.ts';
export type { Login } from './auth/userpass.ts';
export { AccessError, type AccessErrorCode, RateLimited } from './errors.ts';
export { type AuthMount, authTypes } from './mounts/auth-mount.ts';
export type { AuthMounts, AuthTuning, StoredMount } from './mounts/auth-mounts.ts';
export { type Capability, isCapability } from './policy/capability.ts';
export type { ParameterReading, Parameters, ParameterValue } from './policy/parameters.ts';
export { canonicalPolicyName, Policies, policyName, rulesPerTokenMax } from './policy/policies.ts';
export { policyPermits } from './policy/policy-question.ts';
export type { Quota, QuotaChange } from './quota/quota.ts';
export type { Allowance, Quotas } from './quota/quotas.ts';
export { admission, type Bucket, type Rate } from './quota/token-bucket.ts';
export { FairLine } from './scheduling/fair-line.ts';
export { TimeSlice } from './scheduling/time-slice.ts';
export { type InitialAccess, initialAccess } from './tokens/initial-access.ts';
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
export { newToken } from './tokens/token.ts';
export { type TokenLimits, ttlOf } from './tokens/token-lifetime.ts';
export type { TokenRecord } from './tokens/token-record.ts';
export { type Granted, type TokenName, TokenRegistry, type TokenRegistryOptions } from './tokens/token-registry.ts';
export type { TokenRequest } from './tokens/token-request.ts';
export { isRoleName, isTokenRoleType, type TokenRole, type TokenRoleChange } from './tokens/token-role.ts';
export { isLoginTokenType, type TokenSettings, type TokenSettingsChange } from './tokens/token-settings.ts';
export { Tokens, type TokensOptions } from './tokens/tokens.ts';
export type { WrapInfo, Wrapped, Wrapping } from './tokens/wrapping.ts';
export { callerGroup, checkCidrs, isCidr, plainAddress, withinCidrs } from './values/cidr.ts';
export { integerOf, secondsOf } from './values/duration.ts';
export { loginName } from './values/names.ts';
