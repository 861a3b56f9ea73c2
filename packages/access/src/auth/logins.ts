import type { RecordClock } from '@transitd/process';
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
  readonly clock: RecordClock;
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
  readonly #clock: RecordClock;
  #cursor = '';

  constructor({ store, tokens, registry, sources, clock, disputedDates, passwordWork }: LoginsOptions) {
    this.mounts = new AuthMounts({ store });
    this.userpass = new Userpass({ store, registry, clock, passwordWork });
    this.approle = new AppRoles({ store, tokens, registry, clock, disputedDates });
    this.jwt = new JwtLogins({ store, registry, sources, clock });
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Deletes records that can no longer be used. Only the active node calls it. Returns the number of deleted records.
   * @param limit - number of records to check
   */
  async sweep(limit: number): Promise<number> {
    const { removed, cursor } = await sweepLogins(this.#store, {
      mounts: this.mounts,
      now: this.#clock.dueMs(),
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
