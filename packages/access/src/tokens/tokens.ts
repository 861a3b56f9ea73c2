import { hash, randomBytes } from 'node:crypto';
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
  /** The records in clear. */
  readonly store: Store;
  readonly policies: Policies;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** About what tokens may take in memory, in bytes; the one that has been there longest makes room. */
  readonly cachedBytesMax?: number;
}

/** Weight of policies that tokens may still hold after the policies let go of them; then all of them look again. */
const evictedBytesMax = 32 * 1024 * 1024;

/**
 * Who a token stands for. Known tokens are answered from memory by one SHA-256 and one look-up; unknown ones are not kept, so
 * guessing fills no memory. What the store's watch reports as changed is forgotten within the apply.
 */
export class Tokens {
  readonly #store: Store;
  readonly #policies: Policies;
  readonly #now: () => number;
  readonly #key: StoredKey;
  readonly #batchKey: StoredKey;
  /** What the policies had let go of when every token last looked again. */
  #evictedBytes = 0;
  readonly #cache: TokenCache;
  readonly #unwatch: () => void;

  constructor({ store, policies, now, cachedBytesMax = 64 * 1024 * 1024 }: TokensOptions) {
    this.#store = store;
    this.#policies = policies;
    this.#now = now;
    this.#key = new StoredKey(store, tokenKeyPath);
    this.#batchKey = new StoredKey(store, batchKeyPath);
    this.#cache = new TokenCache({ store, key: this.#key, bytesMax: cachedBytesMax });
    const unwatches = [
      store.watch('access/token', (changes) => {
        if (changes === 'everything' || changes.some(({ path }) => path === tokenKeyPath)) this.clear();
        else this.#cache.drop(changes);
      }),
      store.watch(authMountPrefix, (changes) => changes !== 'everything' && this.#cache.dropOfMounts(changes)),
      store.watch(batchKeyPath, () => this.clear()),
    ];
    this.#unwatch = () => {
      for (const unwatch of unwatches) unwatch();
    };
  }

  /** Under which tokens and accessors are hashed. @throws AccessError `not_initialized`, `record_unreadable`; StoreError */
  key(): Promise<Uint8Array> {
    return this.#key.read();
  }

  /** By which tokens expire, in milliseconds since the epoch. */
  get nowMs(): number {
    return this.#now();
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
    if (token.length > (isBatchToken(token) ? batchTokenCharsMax : tokenLengthMax)) return undefined;
    const hashed = hash('sha256', token, 'base64');
    const shown = this.#cache.shown(hashed);
    const now = this.#now();
    const granted = shown?.granted;
    if (shown !== undefined && granted?.generation === this.#policies.generation && isValid(shown, now))
      if (granted.principal.acl.goodUntilMs > now) return granted.principal;
    return isBatchToken(token) || isTokenShaped(token) ? this.#authenticate(token, hashed) : undefined;
  }

  /** A good token by what its holder shows; undefined for any other. */
  async find(token: string): Promise<LoadedToken | undefined> {
    if (!isBatchToken(token)) return isTokenShaped(token) ? this.#good((key) => ({ id: tokenIdOf(key, token) })) : undefined;
    const record = await this.openBatch(token);
    return record && this.#good((tokenKey) => ({ id: tokenIdOf(tokenKey, token), record }));
  }

  /** The record that a batch token carries, good or not; undefined when this cluster has not made it. @throws AccessError `record_unreadable`; StoreError */
  async openBatch(token: string): Promise<TokenRecord | undefined> {
    const key = token.length > batchTokenCharsMax ? undefined : await this.#batchKey.find();
    return key && openBatchToken(key, token);
  }

  /** A good token by its id; undefined for any other. */
  findById(id: string): Promise<LoadedToken | undefined> {
    return this.#good(() => ({ id }));
  }

  /**
   * A batch token with this record. The first one makes the key under which they are encrypted.
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

  /** Who a token in memory stands for; undefined when it is good no more. */
  async principalOf(found: LoadedToken): Promise<Principal | undefined> {
    this.#releasePrincipals();
    for (let token: LoadedToken | undefined = found; token !== undefined; token = await this.#again(token)) {
      const { generation } = this.#policies;
      const { record } = token;
      const root = record.policies.includes('root');
      const acl = await this.#policies.compile(root ? [] : record.policies);
      if (generation !== this.#policies.generation || !isValid(token, this.#now())) continue;
      const principal = Object.freeze({
        id: token.id,
        record,
        root,
        acl,
        goodUntilMs: Math.min(goodUntilMs(token), acl.goodUntilMs),
      });
      token.granted = { principal, generation };
      return principal;
    }
    return undefined;
  }

  /** Forgets every token and wipes the key: for the moment of sealing. */
  clear(): void {
    this.#key.forget();
    this.#batchKey.forget();
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

  /** The same token as it is now: a batch token's record is in itself. */
  #again({ id, record }: LoadedToken): Promise<LoadedToken | undefined> {
    return this.#good(() => (record.type === 'batch' ? { id, record } : { id }));
  }

  /** Tokens keep what their policies come to; what the policies themselves have dropped must not live on in them without bound. */
  #releasePrincipals(): void {
    if (this.#policies.evictedBytes - this.#evictedBytes <= evictedBytesMax) return;
    this.#evictedBytes = this.#policies.evictedBytes;
    this.#cache.releasePrincipals();
  }

  async #good(seek: (key: Uint8Array) => TokenLookup): Promise<LoadedToken | undefined> {
    const token = await this.#cache.load(seek);
    return token !== undefined && isValid(token, this.#now()) ? token : undefined;
  }
}
