import {
  AccessError,
  changedSettings,
  displayNameOf,
  equalizeReads,
  type Issued,
  invalidRequest,
  isRoleName,
  type Login,
  LoginRecords,
  loginName,
  loginPrefix,
  type MethodServices,
  newTokenSettings,
  type OpenedMethod,
  refusedBy,
  type StoredMount,
  type TokenRegistry,
  type TokenSettings,
  type TokenSettingsChange,
} from '@transitd/access';
import { NamedLocks } from '@transitd/event-loop';
import { withinCidrs } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import { LockOuts } from './lock-outs.ts';
import { type PasswordHash, Passwords, type PasswordWork, passwordHashExample } from './passwords.ts';

export interface User {
  readonly password: PasswordHash;
  readonly token: TokenSettings;
}

const passwordCharsMax = 4096;
/** Maximum number of logins in progress, including those that wait for another login of the same name. */
const loginsMax = 512;

/** Logins by user name and password. An unknown name takes the same work and gets the same response as a wrong password. */
export class Userpass implements OpenedMethod {
  readonly users: LoginRecords<User>;
  readonly #store: Store;
  readonly #registry: TokenRegistry;
  readonly #passwords: Passwords;
  readonly #lockOuts: LockOuts;
  /** Serializes logins of one name, so that concurrent guesses cannot pass before the first failure is counted. */
  readonly #locks = new NamedLocks();
  readonly #unwatch: () => void;
  #logins = 0;

  constructor({ store, registry, clock }: MethodServices, work?: PasswordWork) {
    this.#passwords = new Passwords(work);
    this.users = new LoginRecords({ store, kind: 'user', example: { password: passwordHashExample, token: newTokenSettings } });
    this.#store = store;
    this.#registry = registry;
    this.#lockOuts = new LockOuts(clock);
    this.#unwatch = store.watch(loginPrefix, (changes) => {
      if (changes === 'everything') return; // after a restore, lock-outs stay until they expire
      for (const { path } of changes) this.#lockOuts.forget(path);
    });
  }

  /**
   * Creates a user or changes the given fields.
   * @throws AccessError `invalid_request`, `too_many_conflicts`, `busy_logins`; StoreError
   */
  async write(
    mount: StoredMount,
    name: string,
    { password, token }: { readonly password?: string | undefined; readonly token: TokenSettingsChange },
  ): Promise<void> {
    if (password !== undefined && (password === '' || password.length > passwordCharsMax))
      throw invalidRequest(`a password must have 1 to ${passwordCharsMax} characters`);
    const hash = password === undefined ? undefined : await this.#passwords.hash(password);
    await this.users.change(mount, name, (present) => {
      const written = hash ?? present?.password;
      if (written === undefined) throw invalidRequest('missing password');
      return { value: { password: written, token: changedSettings(present?.token ?? newTokenSettings, token) } };
    });
  }

  /** Logs in. @throws AccessError `invalid_request`, `locked_out`, `busy_logins`; StoreError */
  async login(login: Login, name: string, password: string): Promise<Issued> {
    if (this.#logins >= loginsMax) throw new AccessError('busy_logins', 'too many logins at once');
    const key = this.users.pathOf(login.mount.id, name);
    this.#logins += 1;
    try {
      return await this.#locks.run(key, () => this.#login(login, name, password, key));
    } finally {
      this.#logins -= 1;
    }
  }

  close(): void {
    this.#unwatch();
  }

  async #login({ mount, path, address }: Login, name: string, password: string, key: string): Promise<Issued> {
    if (this.#lockOuts.isLocked(key))
      throw new AccessError('locked_out', 'permission denied', { refusedBy: refusedBy('user_lockout') });
    const user = await this.users.find(mount.id, name);
    await equalizeReads(this.#store, mount, key, user !== undefined);
    const guess = password.slice(0, passwordCharsMax + 1);
    // A right password from another address gets the answer of a wrong one and counts as one, so nobody can test passwords from there.
    const matches = await this.#passwords.matches(guess, user?.value.password, address);
    if (!matches || user === undefined || !withinCidrs(user.value.token.boundCidrs, address)) {
      if (isRoleName(name)) this.#lockOuts.recordFailure(key);
      const constraint = user === undefined ? 'username' : matches ? 'token_bound_cidrs' : 'password';
      throw invalidRequest('invalid username or password', refusedBy(constraint));
    }
    this.#lockOuts.forget(key);
    const lower = loginName(name);
    const grant = {
      mount,
      settings: user.value.token,
      displayName: `${displayNameOf(mount)}-${lower}`,
      meta: { username: lower },
      path,
      source: user.condition,
    };
    return this.#registry.issueOnce(grant, 'the user');
  }
}
