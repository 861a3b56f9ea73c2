import type { Store } from '@transitd/storage-fsm';
import { AuthMounts } from '../mounts/auth-mounts.ts';
import type { TokenRegistry } from '../tokens/token-registry.ts';
import type { Tokens } from '../tokens/tokens.ts';
import type { DisputedDates } from '../values/disputed-dates.ts';
import { AppRoles } from './approle.ts';
import { JwtLogins } from './jwt.ts';
import type { KeySources } from './jwt-keys.ts';
import { sweepLogins } from './login-sweep.ts';
import type { PasswordWork } from './passwords.ts';
import { Userpass } from './userpass.ts';

export interface LoginsOptions {
  readonly store: Store;
  readonly tokens: Tokens;
  readonly registry: TokenRegistry;
  readonly sources: KeySources;
  readonly now: () => number;
  /** The clock for deletions, in milliseconds since the epoch. */
  readonly dueNow: () => number;
  /** A clock that is never set, in milliseconds. */
  readonly monotonicNow: () => number;
  readonly disputedDates: DisputedDates;
  readonly passwordWork?: PasswordWork | undefined;
}

/** The auth methods. */
export class Logins {
  readonly mounts: AuthMounts;
  readonly userpass: Userpass;
  readonly approle: AppRoles;
  readonly jwt: JwtLogins;
  readonly #store: Store;
  readonly #dueNow: () => number;
  #cursor = '';

  constructor({ store, tokens, registry, sources, now, dueNow, monotonicNow, disputedDates, passwordWork }: LoginsOptions) {
    this.mounts = new AuthMounts({ store });
    this.userpass = new Userpass({ store, registry, now: monotonicNow, passwordWork });
    this.approle = new AppRoles({ store, tokens, registry, now, disputedDates });
    this.jwt = new JwtLogins({ store, registry, sources, now, monotonicNow });
    this.#store = store;
    this.#dueNow = dueNow;
  }

  /**
   * Deletes records that can no longer be used. Only the active node calls it. Returns the number of deleted records.
   * @param limit - number of records to check
   */
  async sweep(limit: number): Promise<number> {
    const { removed, cursor } = await sweepLogins(this.#store, {
      mounts: this.mounts,
      now: this.#dueNow(),
      cursor: this.#cursor,
      limit,
    });
    this.#cursor = cursor;
    return removed;
  }

  close(): void {
    this.userpass.close();
  }
}
