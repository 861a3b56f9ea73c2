export { type Access, closeAccess, openAccess } from './access.ts';
export type {
  FetchedKeys,
  KeySources,
  Kubernetes,
  KubernetesAnswer,
  LoginRecord,
  MethodServices,
  MethodType,
  OpenedMethod,
} from './auth/auth-method.ts';
export { equalizeReads, type Login } from './auth/login.ts';
export { LoginRecords, loginPrefix, loginRecordsPrefix, type Stored } from './auth/login-records.ts';
export { OutsideWaits } from './auth/outside-waits.ts';
export { changedRole, type RoleChange } from './auth/role.ts';
export { type AuthMount, displayNameOf, newAuthMount, splitsAsAuthPath, wordsBelow } from './mounts/auth-mount.ts';
export type { StoredMount } from './mounts/auth-mounts.ts';
export { type Denial, type NamePlace, refusedByPolicy } from './policy/acl.ts';
export { type Capability, isCapability } from './policy/capability.ts';
export type { Meaning, ParameterValue } from './policy/parameter-values.ts';
export type { ParameterReading } from './policy/parameters.ts';
export { canonicalPolicyName, Policies } from './policy/policies.ts';
export { plainPolicyText, policyPermits } from './policy/policy-text.ts';
export { type Quota, quotaMatches } from './quota/quota.ts';
export type { Allowance, Quotas } from './quota/quotas.ts';
export { admission, type Bucket, type Rate } from './quota/token-bucket.ts';
export type { LoginGrant } from './tokens/login-grant.ts';
export { policiesOfGroups } from './tokens/login-source.ts';
export {
  allows,
  capabilitiesOf,
  denial,
  grants,
  hasDenials,
  hasParameterRules,
  itemDenial,
  laterDenial,
  type NamedRule,
  nameDenial,
  type Principal,
  pageAllowed,
  pathDenial,
  rulesOf,
  useDenial,
} from './tokens/principal.ts';
export { initialAccess } from './tokens/root-token.ts';
export { loginIdOf, newToken } from './tokens/token.ts';
export { type TokenLimits, ttlOf } from './tokens/token-lifetime.ts';
export { policyNames } from './tokens/token-policies.ts';
export type { TokenRecord } from './tokens/token-record.ts';
export { type Granted, type Issued, type TokenName, TokenRegistry } from './tokens/token-registry.ts';
export type { TokenRequest } from './tokens/token-request.ts';
export { isTokenRoleType, type TokenRole } from './tokens/token-role.ts';
export {
  changedSettings,
  isLoginTokenType,
  newTokenSettings,
  type TokenSettings,
  type TokenSettingsChange,
} from './tokens/token-settings.ts';
export { Tokens } from './tokens/tokens.ts';
export type { WrapInfo } from './tokens/wrapping.ts';
export { checkCertificates } from './values/ca-certificates.ts';
export { checkCidrs } from './values/cidr.ts';
export { type ClockDispute, type ClockDisputes, noDisputes, type TimeSource } from './values/clock-dispute.ts';
export { DisputedDates, earlierBy } from './values/disputed-dates.ts';
export { AccessError, conflict, invalidRequest, RateLimited, refusedBy } from './values/errors.ts';
export { type Changed, given } from './values/given.ts';
export { starsMatch } from './values/glob.ts';
export { changedInert, type InertSettings } from './values/inert-settings.ts';
export { decodeJson, encodeJson } from './values/json-record.ts';
export { isRoleName, loginName } from './values/names.ts';
export { didYouMean } from './values/nearest-name.ts';
export { canonicalUrl } from './values/url.ts';
