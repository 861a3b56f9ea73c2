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

export interface AccessOptions {
  /** The store of the records, in plaintext. */
  readonly store: Store;
  /** The clock that decides whether a token or a rule has expired, in milliseconds since the epoch. */
  readonly now: () => number;
  /** The clock for deletions, which are final, and for the expiry of restrictions, which must not end early; `now` when absent. */
  readonly dueNow?: () => number;
  readonly limits?: TokenLimits;
  /** Source of the keys for `jwt` logins; none by default. */
  readonly sources?: KeySources;
  /** Cost of hashing a password; the default when absent. */
  readonly passwordWork?: PasswordWork;
  /** Returns the form of a path under which quotas count requests. When absent, quotas use the path itself. */
  readonly canonicalPath?: (path: string) => string;
}

/** The services of this package. They exist while the barrier is unsealed. */
export interface Access {
  readonly tokens: Tokens;
  readonly policies: Policies;
  readonly registry: TokenRegistry;
  readonly logins: Logins;
  readonly wrapping: Wrapping;
  readonly quotas: Quotas;
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
  limits,
  sources = noSources,
  passwordWork,
  canonicalPath,
}: AccessOptions): Access {
  const policies = new Policies({ store, now, dueNow });
  const tokens = new Tokens({ store, policies, now });
  const registry = new TokenRegistry({ store, tokens, policies, now, dueNow, ...(limits && { limits }) });
  const logins = new Logins({ store, tokens, registry, sources, now, dueNow, passwordWork });
  const wrapping = new Wrapping({ store, tokens, now, ttlSMax: registry.limits.maxTtlS });
  const quotas = new Quotas({ store, now, ...(canonicalPath && { canonicalPath }) });
  return { policies, tokens, registry, logins, wrapping, quotas };
}

/** Clears all cached state and stops watching the store. */
export function closeAccess({ tokens, policies, logins, quotas }: Access): void {
  tokens.close();
  policies.close();
  logins.close();
  quotas.close();
}
