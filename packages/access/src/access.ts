import type { RecordClock } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import type { KeySources, Kubernetes, MethodType } from './auth/auth-method.ts';
import { Logins } from './auth/logins.ts';
import { Policies } from './policy/policies.ts';
import { Quotas } from './quota/quotas.ts';
import type { TokenLimits } from './tokens/token-lifetime.ts';
import { TokenRegistry } from './tokens/token-registry.ts';
import { Tokens } from './tokens/tokens.ts';
import { Wrapping } from './tokens/wrapping.ts';
import { type ClockDisputes, noDisputes } from './values/clock-dispute.ts';
import { DisputedDates } from './values/disputed-dates.ts';

interface AccessOptions {
  /** The store of the records, in plaintext. */
  readonly store: Store;
  readonly clock: RecordClock;
  /** Disagreements of the node's clocks; when absent, they always agree. */
  readonly clockDisputes?: ClockDisputes;
  readonly limits?: TokenLimits;
  /** Source of the keys for `jwt` logins; none by default. */
  readonly sources?: KeySources;
  /** For `kubernetes` logins; by default no API server answers, and the node runs in no pod. */
  readonly kubernetes?: Kubernetes;
  /** The types of auth methods; none by default. */
  readonly methods?: readonly MethodType[];
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
  fetch: async () => {
    throw new Error('this node does not fetch keys');
  },
  failed: () => undefined,
};

const noKubernetes: Kubernetes = {
  post: async () => {
    throw new Error('this node calls no API server');
  },
  podFile: () => undefined,
};

/** Creates the services over a store. Quotas are not enforced until `quotas.open` has read them. */
export function openAccess({
  store,
  clock,
  clockDisputes = noDisputes,
  limits,
  sources = noSources,
  kubernetes = noKubernetes,
  methods = [],
  threads,
}: AccessOptions): Access {
  const policies = new Policies({ store, clock });
  const tokens = new Tokens({ store, policies, clock, ...(threads && { threads }) });
  const disputedDates = new DisputedDates(clockDisputes);
  const registry = new TokenRegistry({ store, tokens, policies, clock, disputedDates, ...(limits && { limits }) });
  const logins = new Logins({ store, tokens, registry, sources, kubernetes, clock, disputedDates, methods });
  const wrapping = new Wrapping({ store, tokens, dates: registry.dates, clock, ttlSMax: registry.limits.maxTtlS });
  const quotas = new Quotas({ store, clock });
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
