export { type Access, type AccessOptions, closeAccess, openAccess } from './access.ts';
export type { AppRole, AppRoleChange, SecretId } from './auth/approle.ts';
export { type AuthMount, authTypes } from './auth/auth-mount.ts';
export type { AuthMounts, AuthTuning, StoredMount } from './auth/auth-mounts.ts';
export type { BoundClaims, JwtConfig, JwtRole } from './auth/jwt.ts';
export type { KeySources } from './auth/jwt-keys.ts';
export { loginName } from './auth/login-name.ts';
export type { Logins } from './auth/logins.ts';
export { isLoginTokenType, type TokenSettings, type TokenSettingsChange } from './auth/token-settings.ts';
export type { Login } from './auth/userpass.ts';
export { callerGroup, checkCidrs, isCidr, plainAddress, withinCidrs } from './cidr.ts';
export { AccessError, type AccessErrorCode, RateLimited } from './errors.ts';
export { FairLine } from './fair-line.ts';
export { type InitialAccess, initialAccess } from './initial-access.ts';
export { type Capability, isCapability } from './policy/capability.ts';
export type { ParameterReading, Parameters, ParameterValue } from './policy/parameters.ts';
export { canonicalPolicyName, Policies, policyName, rulesPerTokenMax } from './policy/policies.ts';
export { policyPermits } from './policy/policy-question.ts';
export { integerOf, secondsOf } from './policy/written-number.ts';
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
} from './principal.ts';
export type { Quota, QuotaChange } from './quota/quota.ts';
export type { Allowance, Quotas } from './quota/quotas.ts';
export { admission, type Bucket, type Rate } from './quota/token-bucket.ts';
export { TimeSlice } from './time-slice.ts';
export { newToken } from './token.ts';
export { type TokenLimits, ttlOf } from './token-lifetime.ts';
export type { TokenRecord } from './token-record.ts';
export { type Granted, type TokenName, TokenRegistry, type TokenRegistryOptions } from './token-registry.ts';
export type { TokenRequest } from './token-request.ts';
export { isRoleName, isTokenRoleType, type TokenRole, type TokenRoleChange } from './token-role.ts';
export { Tokens, type TokensOptions } from './tokens.ts';
export type { WrapInfo, Wrapped, Wrapping } from './wrapping.ts';
