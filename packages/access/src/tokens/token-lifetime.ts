import { invalidRequest } from '../errors.ts';
import type { TokenRecord } from './token-record.ts';

/** What the configuration sets for tokens, in seconds. */
export interface TokenLimits {
  /** How long a token lives that asks for nothing. */
  readonly defaultTtlS: number;
  /** The longest without being periodic. */
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

/** In seconds; 0 stands for nothing asked. */
export interface RequestedLifetime {
  readonly ttlS: number;
  readonly explicitMaxTtlS: number;
  readonly periodS: number;
}

/** What becomes of the times that a new token asks for. */
export function lifetimeOf(asked: RequestedLifetime, { defaultTtlS, maxTtlS }: TokenLimits): Lifetime {
  const warnings: string[] = [];
  const explicitMaxTtlS = capped(asked.explicitMaxTtlS, maxTtlS, 'the explicit max TTL', warnings);
  const periodS = capped(asked.periodS, maxTtlS, 'the period', warnings);
  const wanted = periodS > 0 ? periodS : asked.ttlS > 0 ? asked.ttlS : Math.min(defaultTtlS, maxTtlS);
  const longest = explicitMaxTtlS > 0 ? explicitMaxTtlS : maxTtlS;
  // Who asked for nothing has nothing capped.
  const ttlS = capped(wanted, longest, 'the TTL', asked.ttlS > 0 || periodS > 0 ? warnings : []);
  return { ttlS, explicitMaxTtlS, periodS, warnings };
}

/**
 * A token renewed: a periodic one for its period, another for what is asked or else for `ttlS`, neither beyond its end.
 * @throws AccessError `invalid_request`, also when its longest life is over: what is left of its present TTL stays as it is
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

/** A token of limited uses after one more; after its last it is due to go. */
export const withOneUseLess = (record: TokenRecord, now: number): TokenRecord =>
  record.usesLeft > 1 ? { ...record, usesLeft: record.usesLeft - 1 } : { ...record, usesLeft: -1, expiresMs: now };

/** The smaller of two bounds, of which 0 is none. */
export const smallerBound = (one: number, other: number): number =>
  one === 0 || other === 0 ? one + other : Math.min(one, other);

/** Seconds that a token has left, begun ones as whole; 0 when it does not expire. */
export const ttlOf = ({ expiresMs }: TokenRecord, now: number): number =>
  expiresMs === 0 ? 0 : Math.max(0, Math.ceil((expiresMs - now) / 1000));

function capped(seconds: number, most: number, what: string, warnings: string[]): number {
  if (seconds <= most) return seconds;
  warnings.push(`${what} of ${seconds}s exceeded what is left of its maximum, ${most}s, and was capped to that`);
  return most;
}
