import { invalidRequest } from '../values/errors.ts';
import type { TokenRecord } from './token-record.ts';

/** Token TTLs from the configuration, in seconds. */
export interface TokenLimits {
  /** TTL of a token when the request for it names none. */
  readonly defaultTtlS: number;
  /** Maximum lifetime of a token that is not periodic. */
  readonly maxTtlS: number;
}

/** 32 days each. */
export const defaultLimits: TokenLimits = { defaultTtlS: 768 * 3600, maxTtlS: 768 * 3600 };

export interface Lifetime {
  readonly ttlS: number;
  readonly explicitMaxTtlS: number;
  readonly periodS: number;
  readonly warnings: readonly string[];
}

/** Requested times in seconds; 0 requests none. */
export interface RequestedLifetime {
  readonly ttlS: number;
  readonly explicitMaxTtlS: number;
  readonly periodS: number;
}

/** Applies the limits to the times that a new token requests. */
export function lifetimeOf(requested: RequestedLifetime, { defaultTtlS, maxTtlS }: TokenLimits): Lifetime {
  const warnings: string[] = [];
  const explicitMaxTtlS = capped(requested.explicitMaxTtlS, maxTtlS, 'the explicit max TTL', warnings);
  const periodS = capped(requested.periodS, maxTtlS, 'the period', warnings);
  const wanted = periodS > 0 ? periodS : requested.ttlS > 0 ? requested.ttlS : Math.min(defaultTtlS, maxTtlS);
  const longest = explicitMaxTtlS > 0 ? explicitMaxTtlS : maxTtlS;
  // Capping the default TTL does not need a warning.
  const ttlS = capped(wanted, longest, 'the TTL', requested.ttlS > 0 || periodS > 0 ? warnings : []);
  return { ttlS, explicitMaxTtlS, periodS, warnings };
}

/**
 * Renews a token. A periodic token gets its period. Any other token gets the requested increment or, if the request has none, `ttlS`.
 * No token is renewed beyond its maximum TTL.
 * @throws AccessError `invalid_request`, also when its maximum TTL is over; the token then keeps its present expiry
 */
export function renewed(
  record: TokenRecord,
  {
    incrementS,
    ttlS: usualS,
    now,
    maxTtlS,
  }: { readonly incrementS: number; readonly ttlS: number; readonly now: number; readonly maxTtlS: number },
): { readonly record: TokenRecord; readonly ttlS: number; readonly warnings: readonly string[] } {
  if (!record.renewable) throw invalidRequest('lease is not renewable');
  const { periodS, explicitMaxTtlS } = record;
  const wantedS = periodS > 0 ? periodS : incrementS > 0 ? incrementS : usualS;
  const lifeS = record.maxTtlS > 0 ? Math.min(record.maxTtlS, maxTtlS) : maxTtlS;
  const longestS = explicitMaxTtlS > 0 ? explicitMaxTtlS : periodS > 0 ? Number.POSITIVE_INFINITY : lifeS;
  const warnings: string[] = [];
  if (record.createdMs + longestS * 1000 <= now) throw invalidRequest('lease is not renewable: its maximum TTL is over');
  const leftS = Math.max(0, Math.floor((record.createdMs + longestS * 1000 - now) / 1000));
  const ttlS = capped(wantedS, leftS, 'the TTL', warnings);
  const expiresMs = Math.min(now + wantedS * 1000, record.createdMs + longestS * 1000);
  return { record: { ...record, expiresMs, renewedMs: now }, ttlS, warnings };
}

/** Returns the record of a token of limited uses after one more use. The last use expires it. */
export const withOneUseLess = (record: TokenRecord, now: number): TokenRecord =>
  record.usesLeft > 1 ? { ...record, usesLeft: record.usesLeft - 1 } : { ...record, usesLeft: -1, expiresMs: now };

/** Returns the smaller of two bounds; 0 is no bound. */
export const smallerBound = (one: number, other: number): number =>
  one === 0 || other === 0 ? one + other : Math.min(one, other);

/** Returns the remaining TTL in seconds, rounded up; 0 when the token does not expire. */
export const ttlOf = ({ expiresMs }: TokenRecord, now: number): number =>
  expiresMs === 0 ? 0 : Math.max(0, Math.ceil((expiresMs - now) / 1000));

function capped(seconds: number, most: number, what: string, warnings: string[]): number {
  if (seconds <= most) return seconds;
  warnings.push(`${what} of ${seconds}s exceeds the remaining maximum of ${most}s and was capped to it`);
  return most;
}
