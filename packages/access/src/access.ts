import type { Store } from '@transitd/storage-fsm';
import type { KeySources } from './auth/jwt-keys.ts';
import { Logins } from './auth/logins.ts';
import type { PasswordWork } from './auth/passwords.ts';
import { Policies } from './policy/policies.ts';
import type { TokenLimits } from './token-lifetime.ts';
import { TokenRegistry } from './token-registry.ts';
import { Tokens } from './tokens.ts';

export interface AccessOptions {
  /** The records in clear. */
  readonly store: Store;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly limits?: TokenLimits;
  /** Where `jwt` logins get keys from; none by default. */
  readonly sources?: KeySources;
  /** What hashing a password costs, when it is not the usual. */
  readonly passwordWork?: PasswordWork;
}

/** Everything of access that serves while the barrier is unsealed. */
export interface Access {
  readonly tokens: Tokens;
  readonly policies: Policies;
  readonly registry: TokenRegistry;
  readonly logins: Logins;
}

const noSources: KeySources = {
  file: async () => undefined,
  url: async () => {
    throw new Error('this node fetches nothing');
  },
};

export function openAccess({ store, now, limits, sources = noSources, passwordWork }: AccessOptions): Access {
  const policies = new Policies({ store });
  const tokens = new Tokens({ store, policies, now });
  const registry = new TokenRegistry({ store, tokens, policies, now, ...(limits && { limits }) });
  return { policies, tokens, registry, logins: new Logins({ store, tokens, registry, sources, now, passwordWork }) };
}

/** Forgets everything and lets go of the store. */
export function closeAccess({ tokens, policies, logins }: Access): void {
  tokens.close();
  policies.close();
  logins.close();
}
