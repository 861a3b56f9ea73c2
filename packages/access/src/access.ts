import type { Store } from '@transitd/storage-fsm';
import type { KeySources } from './auth/jwt-keys.ts';
import { Logins } from './auth/logins.ts';
import type { PasswordWork } from './auth/passwords.ts';
import { Policies } from './policy/policies.ts';
import { Quotas } from './quota/quotas.ts';
import type { TokenLimits } from './tokens/token-lifetime.ts';
import { TokenRegistry } from './tokens/token-registry.ts';
import { Tokens } from './tokens/tokens.ts';
import { Wrapping } from './tokens/wrapping.ts';
import { type ClockDisputes, noDisputes } from './values/clock-dispute.ts';
import { DisputedDates } from './values/disputed-dates.ts';

export interface AccessOptions {
  /** The store of the records, in plaintext. */
  readonly store: Store;
  /** The clock that decides whether a token or a rule has expired, in milliseconds since the epoch. */
  readonly now: () => number;
  /** The clock for deletions, which are final, and for the expiry of restrictions, which must not end early; `now` when absent. */
  readonly dueNow?: () => number;
  /** A clock that is never set, in milliseconds, for lock-outs, quotas and the age of fetched keys; `now` when absent. */
  readonly monotonicNow?: () => number;
  /** Disagreements of the node's clocks; when absent, they always agree. */
  readonly clockDisputes?: ClockDisputes;
  readonly limits?: TokenLimits;
  /** Source of the keys for `jwt` logins; none by default. */
  readonly sources?: KeySources;
  /** Cost of hashing a password; the default when absent. */
  readonly passwordWork?: PasswordWork;
  /** Number of threads that share the memory for cached tokens; 1 when absent. */
  readonly threads?: number;
}

/** The services of this package. They exist while the barrier is unsealed. */
export interface Access {
  readonly tokens: Tokens;
  readonly policies: Policies;
  readonly registry: TokenRegistry;
  readonly logins: Logins;
  readonly wrapping: Wrapping;
  readonly quotas: Quotas;
  readonly disputedDates: DisputedDates;
}

const noSources: KeySources = {
  file: async () => undefined,
  url: async () => {
    throw new Error('this node does not fetch keys');
  },
};

/** Creates the services over a store. Quotas are not enforced until `quotas.open` has read them. */
export function openAccess({
  store,
  now,
  dueNow = now,
  monotonicNow = now,
  clockDisputes = noDisputes,
  limits,
  sources = noSources,
  passwordWork,
  threads,
}: AccessOptions): Access {
  const policies = new Policies({ store, now, dueNow });
  const tokens = new Tokens({ store, policies, now, ...(threads && { threads }) });
  const disputedDates = new DisputedDates(clockDisputes);
  const registry = new TokenRegistry({ store, tokens, policies, now, dueNow, disputedDates, ...(limits && { limits }) });
  const logins = new Logins({ store, tokens, registry, sources, now, dueNow, monotonicNow, disputedDates, passwordWork });
  const wrapping = new Wrapping({ store, tokens, dates: registry.dates, now, ttlSMax: registry.limits.maxTtlS });
  const quotas = new Quotas({ store, now: monotonicNow });
  return { policies, tokens, registry, logins, wrapping, quotas, disputedDates };
}

/** Clears all cached state and stops watching the store. */
export function closeAccess({ tokens, policies, logins, wrapping, quotas, disputedDates }: Access): void {
  disputedDates.close();
  tokens.close();
  policies.close();
  logins.close();
  wrapping.close();
  quotas.close();
}
