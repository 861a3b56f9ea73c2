import { hash, randomBytes } from 'node:crypto';
import type { RecordClock } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import { authMountPrefix } from '../mounts/auth-mount.ts';
import type { Policies } from '../policy/policies.ts';
import { batchTokenCharsMax, isBatchToken, openBatchToken, sealBatchToken } from './batch-token.ts';
import type { Principal } from './principal.ts';
import { encodeTokenKey, StoredKey, tokenKeyBytes } from './stored-key.ts';
import { isTokenShaped, tokenIdOf, tokenLengthMax } from './token.ts';
import { goodUntilMs, isValid, type LoadedToken, TokenCache, type TokenLookup } from './token-cache.ts';
import { batchKeyPath, tokenKeyPath } from './token-paths.ts';
import type { TokenRecord } from './token-record.ts';

export interface TokensOptions {
  /** The store of the records, in plaintext. */
  readonly store: Store;
  readonly policies: Policies;
  readonly clock: RecordClock;
  /** Approximate memory for cached tokens, in bytes; the oldest are evicted first. */
  readonly cachedBytesMax?: number;
  /** Number of threads that share this memory; 1 when absent. */
  readonly threads?: number;
}

/** Maximum memory of evicted policies that cached tokens still refer to. Beyond it, all tokens release their principals. */
const evictedBytesMax = 32 * 1024 * 1024;

/**
 * Authenticates tokens. A cached token takes one SHA-256 and one map lookup. Unknown tokens are not cached, so guesses take no
 * memory. The watch on the store drops changed tokens within the apply.
 */
export class Tokens {
  readonly #store: Store;
  readonly #policies: Policies;
  readonly #clock: RecordClock;
  readonly #key: StoredKey;
  readonly #batchKey: StoredKey;
  /** Value of `policies.evictedBytes` when all tokens last released their principals. */
  #evictedBytes = 0;
  readonly #cache: TokenCache;
  readonly #unwatch: () => void;

  constructor({ store, policies, clock, cachedBytesMax = 64 * 1024 * 1024, threads = 1 }: TokensOptions) {
    this.#store = store;
    this.#policies = policies;
    this.#clock = clock;
    this.#key = new StoredKey(store, tokenKeyPath);
    this.#batchKey = new StoredKey(store, batchKeyPath);
    this.#cache = new TokenCache({ store, key: this.#key, bytesMax: Math.floor(cachedBytesMax / threads) });
    const unwatches = [
      store.watch('access/token', (changes) => {
        if (changes === 'everything' || changes.some(({ path }) => path === tokenKeyPath)) this.clear();
        else this.#cache.drop(changes);
      }),
      store.watch(authMountPrefix, (changes) => changes !== 'everything' && this.#cache.dropTokensOfMounts(changes)),
      store.watch(batchKeyPath, () => this.clear()),
    ];
    this.#unwatch = () => {
      for (const unwatch of unwatches) unwatch();
    };
  }

  /** Returns the key that hashes tokens and accessors. @throws AccessError `not_initialized`, `record_unreadable`; StoreError */
  key(): Promise<Uint8Array> {
    return this.#key.read();
  }

  /** The present time for the expiry of tokens, in milliseconds since the epoch. */
  get nowMs(): number {
    return this.#clock.utcMs();
  }

  /** While this number is unchanged, every principal returned so far is valid until it expires. */
  get epoch(): number {
    return this.#cache.changes + this.#policies.generation;
  }

  /**
   * Returns the token's principal; undefined for an unknown token. Synchronous when the token is cached. Call it only while the
   * barrier is unsealed, and call `clear` when the barrier seals.
   * @throws AccessError `not_initialized`, `record_unreadable`; StoreError
   */
  authenticate(token: string): Principal | undefined | Promise<Principal | undefined> {
    if (token.length > (isBatchToken(token) ? batchTokenCharsMax : tokenLengthMax)) return undefined;
    const hashed = hash('sha256', token, 'base64');
    const cached = this.#cache.byHash(hashed);
    const now = this.#clock.utcMs();
    const resolved = cached?.resolved;
    if (cached !== undefined && resolved?.generation === this.#policies.generation && isValid(cached, now))
      if (resolved.principal.acl.goodUntilMs > now) return resolved.principal;
    return isBatchToken(token) || isTokenShaped(token) ? this.#authenticate(token, hashed) : undefined;
  }

  /** Finds a valid token; undefined for any other. */
  async find(token: string): Promise<LoadedToken | undefined> {
    if (!isBatchToken(token)) return isTokenShaped(token) ? this.#valid((key) => ({ id: tokenIdOf(key, token) })) : undefined;
    const record = await this.openBatch(token);
    return record && this.#valid((tokenKey) => ({ id: tokenIdOf(tokenKey, token), record }));
  }

  /**
   * Returns the record in a batch token, valid or not; undefined when this cluster did not make it.
   * @throws AccessError `record_unreadable`; StoreError
   */
  async openBatch(token: string): Promise<TokenRecord | undefined> {
    const key = token.length > batchTokenCharsMax ? undefined : await this.#batchKey.find();
    return key && openBatchToken(key, token);
  }

  /** Finds a valid token by its id; undefined for any other. */
  findById(id: string): Promise<LoadedToken | undefined> {
    return this.#valid(() => ({ id }));
  }

  /**
   * Makes a batch token from a record. The first call creates the key that encrypts batch tokens.
   * @throws AccessError `invalid_request` when the record is too large for one; StoreError
   */
  async sealBatch(record: TokenRecord): Promise<string> {
    for (;;) {
      const key = await this.#batchKey.find();
      if (key !== undefined) return sealBatchToken(key, record);
      const value = encodeTokenKey(randomBytes(tokenKeyBytes));
      const conditions = [{ path: batchKeyPath, revision: 0 }];
      await this.#store.commit({ conditions, writes: [{ path: batchKeyPath, value }] }).finally(() => value.fill(0));
    }
  }

  /** Returns the principal of a loaded token; undefined when it is no longer valid. */
  async principalOf(found: LoadedToken): Promise<Principal | undefined> {
    this.#releasePrincipals();
    for (let token: LoadedToken | undefined = found; token !== undefined; token = await this.#reload(token)) {
      const { generation } = this.#policies;
      const { record } = token;
      const root = record.policies.includes('root');
      const acl = await this.#policies.compile(root ? [] : record.policies);
      if (generation !== this.#policies.generation || !isValid(token, this.#clock.utcMs())) continue;
      const principal = Object.freeze({
        id: token.id,
        record,
        root,
        acl,
        goodUntilMs: Math.min(goodUntilMs(token), acl.goodUntilMs),
      });
      token.resolved = { principal, generation };
      return principal;
    }
    return undefined;
  }

  /** Drops every token and wipes the keys, when the barrier seals. */
  clear(): void {
    this.#key.forget();
    this.#batchKey.forget();
    this.#cache.clear();
  }

  /** Clears and stops watching the store. */
  close(): void {
    this.#unwatch();
    this.clear();
  }

  async #authenticate(token: string, hashed: string): Promise<Principal | undefined> {
    const found = await this.find(token);
    if (found === undefined) return undefined;
    this.#cache.setHash(found, hashed);
    return this.principalOf(found);
  }

  /** Loads the same token again. */
  #reload({ id, record }: LoadedToken): Promise<LoadedToken | undefined> {
    return this.#valid(() => (record.type === 'batch' ? { id, record } : { id }));
  }

  /** Bounds the memory of compiled policies that were evicted but are still referenced by cached tokens. */
  #releasePrincipals(): void {
    if (this.#policies.evictedBytes - this.#evictedBytes <= evictedBytesMax) return;
    this.#evictedBytes = this.#policies.evictedBytes;
    this.#cache.releasePrincipals();
  }

  async #valid(lookup: (key: Uint8Array) => TokenLookup): Promise<LoadedToken | undefined> {
    const token = await this.#cache.load(lookup);
    return token !== undefined && isValid(token, this.#clock.utcMs()) ? token : undefined;
  }
}
