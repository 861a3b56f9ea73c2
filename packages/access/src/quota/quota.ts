import { invalidRequest } from '../errors.ts';
import { decodeJson, encodeJson } from '../json-record.ts';
import type { Rate } from './token-bucket.ts';

/** How often each caller may ask. */
export interface Quota extends Rate {
  readonly name: string;
  /** Empty for everywhere; with `/` at its end for what lies below, with `*` for what begins so; else one path. */
  readonly path: string;
  /** Of logins by this role only; empty for all requests. */
  readonly role: string;
  /** Whose requests count combined. `token`: those of one good token, wherever they come from; any other request counts for its address. */
  readonly groupBy: 'ip' | 'token';
}

export type QuotaChange = { readonly [Name in keyof Omit<Quota, 'name'>]?: Quota[Name] | undefined };

export interface QuotaConfig {
  /** Answers say what is left. */
  readonly responseHeaders: boolean;
  /** Never counted; with `*` at the end for whatever begins so. */
  readonly exemptPaths: readonly string[];
}

export const newQuotaConfig: QuotaConfig = { responseHeaders: false, exemptPaths: [] };

const example: Omit<Quota, 'groupBy'> = { name: '', path: '', role: '', rate: 0, intervalS: 1, blockIntervalS: 0 };
/** What a record says that was written before its member was known. */
const newMemberDefaults: Pick<Quota, 'groupBy'> = { groupBy: 'ip' };
const secondsMax = 366 * 86_400;
const pathsMax = 256;

/** A quota after a change, or a new one. @throws AccessError `invalid_request` */
export function changedQuota(name: string, present: Quota | undefined, change: QuotaChange): Quota {
  const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
  const quota: Quota = { ...(present ?? { ...example, ...newMemberDefaults, name }), ...given };
  if (!Number.isFinite(quota.rate) || quota.rate <= 0) throw invalidRequest("'rate' must be greater than 0");
  if (quota.intervalS < 1 || quota.intervalS > secondsMax) throw invalidRequest(`'interval' is between 1s and ${secondsMax}s`);
  if (quota.blockIntervalS < 0 || quota.blockIntervalS > secondsMax)
    throw invalidRequest(`'block_interval' is at most ${secondsMax}s`);
  if (quota.role !== '' && quota.groupBy !== 'ip')
    throw invalidRequest('logins have no token yet: a quota for a role counts by ip');
  if (quota.path.length > 1024 || quota.role.length > 128) throw invalidRequest('the path or the role is too long');
  return quota;
}

/** @throws AccessError `invalid_request` */
export function checkQuotaConfig(config: QuotaConfig): QuotaConfig {
  if (config.exemptPaths.length > pathsMax || config.exemptPaths.some(({ length }) => length > 1024))
    throw invalidRequest(`at most ${pathsMax} exempt paths, of 1024 characters each`);
  return config;
}

export const encodeQuota = (quota: Quota | QuotaConfig): Buffer => encodeJson(quota);
/** @throws AccessError `record_unreadable` */
export const decodeQuota = (stored: Uint8Array): Quota => ({ ...newMemberDefaults, ...decodeJson(stored, example) });
export const decodeQuotaConfig = (stored: Uint8Array): QuotaConfig => decodeJson(stored, newQuotaConfig);

/** Whether a path, without a slash at its end, is one of those that `pattern` stands for. */
export function pathMatches(pattern: string, path: string): boolean {
  if (pattern === '' || pattern === path) return true;
  if (pattern.endsWith('*')) return path.startsWith(pattern.slice(0, -1));
  return pattern.endsWith('/') && `${path}/`.startsWith(pattern);
}
