import { hash } from 'node:crypto';
import type { Store } from '@transitd/storage-fsm';
import type { Policies } from './policy/policies.ts';
import type { Principal } from './principal.ts';
import { isTokenShaped, tokenLengthMax } from './token.ts';
import { goodUntilMs, isGood, type LoadedToken, TokenCache } from './token-cache.ts';
import { TokenKey, tokenIdOf } from './token-key.ts';
import { tokenKeyPath } from './token-paths.ts';

export interface TokensOptions {
  /** The records in clear. */
  readonly store: Store;
  readonly policies: Policies;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Tokens kept in memory; the one that has been there longest makes room. */
  readonly cachedMax?: number;
}

/**
 * Who a token stands for. Known tokens are answered from memory by one SHA-256 and one look-up; unknown ones are not kept, so
 * guessing fills no memory. What the store's watch reports as changed is forgotten within the apply.
 */
export class Tokens {
  readonly #policies: Policies;
  readonly #now: () => number;
  readonly #key: TokenKey;
  readonly #cache: TokenCache;
  readonly #unwatch: () => void;

  constructor({ store, policies, now, cachedMax = 65_536 }: TokensOptions) {
    this.#policies = policies;
    this.#now = now;
    this.#key = new TokenKey(store);
    this.#cache = new TokenCache({ store, key: this.#key, loadedMax: cachedMax });
    this.#unwatch = store.watch('access/token', (changes) => {
      if (changes === 'everything' || changes.some(({ path }) => path === tokenKeyPath)) this.clear();
      else this.#cache.drop(changes);
    });
  }

  /** Under which tokens and accessors are hashed. @throws AccessError `not_initialized`, `record_unreadable`; StoreError */
  key(): Promise<Uint8Array> {
    return this.#key.read();
  }

  /** While it stays the same, every principal that was given out holds, until its time. */
  get epoch(): number {
    return this.#cache.changes + this.#policies.generation;
  }

  /**
   * The token's principal, undefined for an unknown one; at once when it is in memory.
   * The caller asks only while the barrier is unsealed, and clears this when it seals.
   * @throws AccessError `not_initialized`, `record_unreadable`; StoreError
   */
  authenticate(token: string): Principal | undefined | Promise<Principal | undefined> {
    if (token.length > tokenLengthMax) return undefined;
    const hashed = hash('sha256', token, 'base64');
    const shown = this.#cache.shown(hashed);
    if (shown?.granted?.generation === this.#policies.generation && isGood(shown, this.#now())) return shown.granted.principal;
    return isTokenShaped(token) ? this.#authenticate(token, hashed) : undefined;
  }

  /** A good token by what its holder shows; undefined for any other. */
  async find(token: string): Promise<LoadedToken | undefined> {
    return isTokenShaped(token) ? this.#good((key) => tokenIdOf(key, token)) : undefined;
  }

  /** A good token by its id; undefined for any other. */
  findById(id: string): Promise<LoadedToken | undefined> {
    return this.#good(() => id);
  }

  /** Who a token in memory stands for; undefined when it is good no more. */
  async principalOf(found: LoadedToken): Promise<Principal | undefined> {
    for (let token: LoadedToken | undefined = found; token !== undefined; token = await this.findById(token.id)) {
      const { generation } = this.#policies;
      const { record } = token;
      const root = record.policies.includes('root');
      const acl = await this.#policies.compile(root ? [] : record.policies);
      if (generation !== this.#policies.generation || !isGood(token, this.#now())) continue;
      const principal = Object.freeze({
        id: token.id,
        record,
        root,
        acl,
        goodUntilMs: goodUntilMs(token),
      });
      token.granted = { principal, generation };
      return principal;
    }
    return undefined;
  }

  /** Forgets every token and wipes the key: for the moment of sealing. */
  clear(): void {
    this.#key.forget();
    this.#cache.clear();
  }

  /** Clears, and lets go of the store. */
  close(): void {
    this.#unwatch();
    this.clear();
  }

  async #authenticate(token: string, hashed: string): Promise<Principal | undefined> {
    const found = await this.find(token);
    if (found === undefined) return undefined;
    this.#cache.noteShown(found, hashed);
    return this.principalOf(found);
  }

  async #good(idOf: (key: Uint8Array) => string): Promise<LoadedToken | undefined> {
    const token = await this.#cache.load(idOf);
    return token !== undefined && isGood(token, this.#now()) ? token : undefined;
  }
}
