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
  /** The records in clear. */
  readonly store: Store;
  /** Milliseconds since the epoch: what has expired by it is refused. */
  readonly now: () => number;
  /** The same for deletions, which cannot be taken back, and for restrictions, which must not end early; `now` when absent. */
  readonly dueNow?: () => number;
  readonly limits?: TokenLimits;
  /** Where `jwt` logins get keys from; none by default. */
  readonly sources?: KeySources;
  /** What hashing a password costs, when it is not the usual. */
  readonly passwordWork?: PasswordWork;
  /** The form of a path in which quotas count requests; as written when absent. */
  readonly canonicalPath?: (path: string) => string;
}

/** Everything of access that serves while the barrier is unsealed. */
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
    throw new Error('this node fetches nothing');
  },
};

/** The rules of quotas are read by `quotas.open`, and in force from then on. */
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

/** Forgets everything and lets go of the store. */
export function closeAccess({ tokens, policies, logins, quotas }: Access): void {
  tokens.close();
  policies.close();
  logins.close();
  quotas.close();
}
