import { invalidRequest } from '../values/errors.ts';
import { given } from '../values/given.ts';
import { decodeJson, encodeJson } from '../values/json-record.ts';
import { loginName } from '../values/names.ts';
import type { Rate } from './token-bucket.ts';

/** A rate limit for each caller. */
export interface Quota extends Rate {
  readonly name: string;
  /**
   * Paths to which the quota applies: empty for all paths; with a trailing `/`, all paths below it; with a trailing `*`, all paths
   * with that prefix; otherwise this one path.
   */
  readonly path: string;
  /** Applies only to logins by this role; empty for all requests. */
  readonly role: string;
  /**
   * How requests are grouped. `token` groups a request with a valid token by that token, whatever its address, and any other request by
   * its address.
   */
  readonly groupBy: 'ip' | 'token';
  /** Stored and returned, but without effect: there are no namespaces. */
  readonly inheritable: boolean;
}

export type QuotaChange = { readonly [Name in keyof Omit<Quota, 'name'>]?: Quota[Name] | undefined };

export interface QuotaConfig {
  /** Whether responses have headers with the remaining requests. */
  readonly responseHeaders: boolean;
  /** Paths that are not counted; a trailing `*` matches a prefix. */
  readonly exemptPaths: readonly string[];
  /** Stored and returned, but without effect. */
  readonly auditLogging: boolean;
}

export const newQuotaConfig: QuotaConfig = { responseHeaders: false, exemptPaths: [], auditLogging: false };

const newQuota: Quota = {
  name: '',
  path: '',
  role: '',
  rate: 0,
  intervalS: 1,
  blockIntervalS: 0,
  groupBy: 'ip',
  inheritable: true,
};
const secondsMax = 366 * 86_400;
const pathsMax = 256;

/** Returns a quota after a change, or a new quota. @throws AccessError `invalid_request` */
export function changedQuota(name: string, present: Quota | undefined, change: QuotaChange): Quota {
  const quota: Quota = { ...(present ?? { ...newQuota, name }), ...given(change) };
  if (!Number.isFinite(quota.rate) || quota.rate <= 0) throw invalidRequest("'rate' must be greater than 0");
  if (quota.intervalS < 1 || quota.intervalS > secondsMax)
    throw invalidRequest(`'interval' must be between 1s and ${secondsMax}s`);
  if (quota.blockIntervalS < 0 || quota.blockIntervalS > secondsMax)
    throw invalidRequest(`'block_interval' is at most ${secondsMax}s`);
  if (quota.role !== '' && quota.groupBy !== 'ip')
    throw invalidRequest('a quota for a role must count by ip, since logins have no token yet');
  if (quota.path.length > 1024 || quota.role.length > 128)
    throw invalidRequest('a path must have at most 1024 characters, a role at most 128');
  return quota;
}

/** @throws AccessError `invalid_request` */
export function checkQuotaConfig(config: QuotaConfig): QuotaConfig {
  if (config.exemptPaths.length > pathsMax || config.exemptPaths.some(({ length }) => length > 1024))
    throw invalidRequest(`at most ${pathsMax} exempt paths are allowed, of at most 1024 characters each`);
  return config;
}

export const encodeQuota = (quota: Quota | QuotaConfig): Buffer => encodeJson(quota);
/** @throws AccessError `record_unreadable` */
export const decodeQuota = (stored: Uint8Array): Quota => decodeJson(stored, newQuota);
export const decodeQuotaConfig = (stored: Uint8Array): QuotaConfig => decodeJson(stored, newQuotaConfig);

/** Returns whether the path of a quota applies to the path of a request, which has no trailing slash. */
export function quotaMatches(pattern: string, path: string): boolean {
  if (pattern === '' || pattern === path) return true;
  if (pattern.endsWith('*')) return path.startsWith(pattern.slice(0, -1));
  return pattern.endsWith('/') && `${path}/`.startsWith(pattern);
}

/** Returns the part of a path that requests must begin with. */
const prefixOf = ({ path }: Quota): string => (path.endsWith('*') ? path.slice(0, -1) : path);
const isOnePath = ({ path }: Quota): boolean => !/(?:^|[*/])$/.test(path);

/** Orders quotas so that the first one that matches a request is the most specific one. */
export const mostSpecificFirst = (one: Quota, other: Quota): number =>
  prefixOf(other).length - prefixOf(one).length || Number(isOnePath(other)) - Number(isOnePath(one));

/** Returns whether neither of two quotas is more specific than the other, and both match the same requests. */
export const countSameRequests = (one: Quota, other: Quota): boolean =>
  loginName(one.role) === loginName(other.role) && prefixOf(one) === prefixOf(other) && isOnePath(one) === isOnePath(other);
