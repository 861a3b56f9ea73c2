import { hash } from 'node:crypto';
import type { Store } from '@transitd/storage-fsm';
import { AccessError } from './errors.ts';
import type { Principal } from './principal.ts';
import { decodeToken, decodeTokenKey } from './records.ts';
import { isTokenShaped, tokenKeyPath, tokenLengthMax, tokenPath } from './token.ts';

export interface TokensOptions {
  /** The records in clear. */
  readonly store: Store;
  /** Tokens kept in memory; the one that has been there longest makes room. */
  readonly cachedMax?: number;
}

interface Look {
  /** Empty until the key is there. */
  path: string;
  changed: boolean;
}

interface Cached {
  readonly principal: Principal;
  readonly path: string;
}

/**
 * Who a token stands for. Known tokens are answered from memory by one SHA-256 and one look-up; unknown ones are not kept, so
 * guessing fills no memory. What the store's watch reports as changed is forgotten within the apply.
 */
export class Tokens {
  readonly #store: Store;
  readonly #cachedMax: number;
  readonly #unwatch: () => void;
  /** By SHA-256 of the token, so that no token stays in memory and look-ups do not compare it. */
  readonly #cached = new Map<string, Cached>();
  readonly #hashOfPath = new Map<string, string>();
  #key: Uint8Array | undefined;
  /** Under way; `changed` once what it may have read is not so any more. */
  readonly #looks = new Set<Look>();

  constructor({ store, cachedMax = 65_536 }: TokensOptions) {
    this.#store = store;
    this.#cachedMax = cachedMax;
    this.#unwatch = store.watch('access/token', (changes) => {
      for (const { path } of changes) {
        if (path === tokenKeyPath) this.#forgetAll();
        else this.#forget(path);
      }
    });
  }

  /**
   * The token's principal, undefined for an unknown one; at once when it is in memory.
   * The caller asks only while the barrier is unsealed, and clears this when it seals.
   * @throws AccessError `not_initialized`, `record_unreadable`; StoreError
   */
  authenticate(token: string): Principal | undefined | Promise<Principal | undefined> {
    if (token.length > tokenLengthMax) return undefined;
    const hashed = hash('sha256', token, 'base64');
    const cached = this.#cached.get(hashed);
    if (cached !== undefined) return cached.principal;
    return isTokenShaped(token) ? this.#look(token, hashed) : undefined;
  }

  /** Forgets every token and wipes the key: for the moment of sealing. */
  clear(): void {
    this.#forgetAll();
  }

  /** Clears, and lets go of the store. */
  close(): void {
    this.#unwatch();
    this.clear();
  }

  async #look(token: string, hashed: string): Promise<Principal | undefined> {
    const look: Look = { path: '', changed: false };
    this.#looks.add(look);
    try {
      for (;;) {
        look.changed = false;
        look.path = tokenPath(this.#key ?? (await this.#readKey(look)), token);
        const record = await this.#store.get(look.path);
        if (look.changed) continue; // this very token, or the key: what was read may be what was just taken away
        if (record === undefined) return undefined;
        const principal = decodeToken(record.value);
        this.#remember(hashed, { principal, path: look.path });
        return principal;
      }
    } finally {
      this.#looks.delete(look);
    }
  }

  async #readKey(look: Look): Promise<Uint8Array> {
    const record = await this.#store.get(tokenKeyPath);
    if (record === undefined) throw new AccessError('not_initialized', 'there is no token key yet');
    const key = decodeTokenKey(record.value);
    if (!look.changed) this.#key = key;
    return key;
  }

  #remember(hashed: string, cached: Cached): void {
    if (this.#cached.size >= this.#cachedMax) {
      const [oldest] = this.#cached.values();
      if (oldest !== undefined) this.#drop(oldest.path);
    }
    this.#cached.set(hashed, cached);
    this.#hashOfPath.set(cached.path, hashed);
  }

  #forget(path: string): void {
    for (const look of this.#looks) if (look.path === path) look.changed = true;
    this.#drop(path);
  }

  #drop(path: string): void {
    const hashed = this.#hashOfPath.get(path);
    if (hashed === undefined) return;
    this.#cached.delete(hashed);
    this.#hashOfPath.delete(path);
  }

  #forgetAll(): void {
    for (const look of this.#looks) look.changed = true;
    this.#cached.clear();
    this.#hashOfPath.clear();
    this.#key?.fill(0);
    this.#key = undefined;
  }
}
