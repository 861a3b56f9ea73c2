import type { Change, Condition, Store } from '@transitd/storage-fsm';
import { authMountPath, decodeAuthMount, parseMountReference } from '../mounts/auth-mount.ts';
import type { Principal } from './principal.ts';
import type { StoredKey } from './stored-key.ts';
import { accessorIdOf } from './token.ts';
import { tokenPath, tokenPrefix } from './token-paths.ts';
import { decodeTokenRecord, type TokenRecord } from './token-record.ts';
import type { Lineage } from './token-transactions.ts';

/** A token in memory, with its principal while the policies are unchanged. */
export interface LoadedToken extends Lineage {
  readonly parent: LoadedToken | undefined;
  /** Whether the token's record was changed, deleted or evicted. If so, neither this entry nor its descendants may be used. */
  dropped: boolean;
  /** SHA-256 of the token, after a caller presented it. */
  hashed: string | undefined;
  /** The token's principal, valid for this generation of the policies. */
  resolved: { readonly principal: Principal; readonly generation: number } | undefined;
}

/** The token to load: its id and, for a batch token, the record that it contains. */
export interface TokenLookup {
  readonly id: string;
  readonly record?: TokenRecord;
}

/** A load in progress. */
interface PendingLoad {
  /** Ids of the tokens and paths of the auth methods that this load reads. */
  readonly ids: Set<string>;
  /** Whether one of these tokens or methods has changed since the load began. */
  changed: boolean;
}

/**
 * Returns whether a token is valid: neither the token nor any of its ancestors was dropped, is used up or has expired. So one write that
 * revokes a token also revokes all its descendants.
 */
export function isValid(token: LoadedToken, now: number): boolean {
  for (let each: LoadedToken | undefined = token; each !== undefined; each = each.parent)
    if (each.dropped || each.record.usesLeft < 0 || (each.record.expiresMs !== 0 && each.record.expiresMs <= now)) return false;
  return true;
}

/** Returns when the token or its first ancestor expires, in milliseconds since the epoch; infinite when none does. */
export function goodUntilMs(token: LoadedToken): number {
  let earliest = Number.POSITIVE_INFINITY;
  for (let each: LoadedToken | undefined = token; each !== undefined; each = each.parent)
    if (each.record.expiresMs !== 0) earliest = Math.min(earliest, each.record.expiresMs);
  return earliest;
}

/** Caches tokens with their ancestors. A changed token is dropped while the entry that changes it is applied. */
export class TokenCache {
  readonly #store: Store;
  readonly #key: StoredKey;
  readonly #bytesMax: number;
  readonly #tokens = new Map<string, LoadedToken>();
  #bytes = 0;
  /** By SHA-256 of the token, so that tokens themselves are neither kept in memory nor compared. */
  readonly #byHash = new Map<string, LoadedToken>();
  readonly #pending = new Set<PendingLoad>();
  #changes = 0;

  constructor({ store, key, bytesMax }: { readonly store: Store; readonly key: StoredKey; readonly bytesMax: number }) {
    this.#store = store;
    this.#key = key;
    this.#bytesMax = bytesMax;
  }

  /** Increases with every change of a token that was cached or being read. */
  get changes(): number {
    return this.#changes;
  }

  /** Returns the cached token with this SHA-256. The caller checks whether it is valid. */
  byHash(hashed: string): LoadedToken | undefined {
    return this.#byHash.get(hashed);
  }

  /** Records the SHA-256 of a cached token. */
  setHash(token: LoadedToken, hashed: string): void {
    if (token.dropped) return;
    token.hashed = hashed;
    this.#byHash.set(hashed, token);
  }

  /**
   * Loads a token with its ancestors; undefined when one of them does not exist.
   * @param lookup - computes the lookup from the key that hashes tokens; it may be called again
   * @throws AccessError `not_initialized`, `record_unreadable`; StoreError
   */
  async load(lookup: (key: Uint8Array) => TokenLookup): Promise<LoadedToken | undefined> {
    const pending: PendingLoad = { ids: new Set(), changed: false };
    this.#pending.add(pending);
    try {
      for (;;) {
        pending.changed = false;
        pending.ids.clear();
        const key = this.#key.cached ?? (await this.#key.read());
        if (pending.changed) continue;
        const token = await this.#read(lookup(key), key, pending);
        // A record that was read may have been deleted or evicted meanwhile.
        if (!pending.changed && (token === undefined || isWhole(token))) return token;
      }
    } finally {
      this.#pending.delete(pending);
    }
  }

  /** Drops tokens whose records below `access/token/` changed. */
  drop(changes: readonly Change[]): void {
    for (const { path } of changes) {
      const id = path.slice(tokenPrefix.length);
      for (const pending of this.#pending) if (pending.ids.has(id)) this.#changed(pending);
      const token = this.#tokens.get(id);
      if (token !== undefined) this.#forget(token);
    }
  }

  /** Drops the tokens of auth methods whose records below `access/auth/` changed. */
  dropTokensOfMounts(changes: readonly Change[]): void {
    const paths = new Set(changes.map(({ path }) => path));
    for (const pending of this.#pending) if ([...pending.ids].some((id) => paths.has(id))) this.#changed(pending);
    for (const token of [...this.#tokens.values()])
      if (token.mount !== undefined && paths.has(token.mount.path)) this.#forget(token);
  }

  /** Drops every token. */
  clear(): void {
    for (const pending of this.#pending) this.#changed(pending);
    for (const token of [...this.#tokens.values()]) this.#forget(token);
    this.#changes += 1;
  }

  /** Releases the principals of all tokens, and with them their compiled policies. They are computed again on the next use. */
  releasePrincipals(): void {
    for (const token of this.#tokens.values()) token.resolved = undefined;
  }

  async #read({ id, record: carried }: TokenLookup, key: Uint8Array, pending: PendingLoad): Promise<LoadedToken | undefined> {
    pending.ids.add(id);
    const known = this.#tokens.get(id);
    if (known !== undefined && isWhole(known)) return known;
    const stored = carried === undefined ? await this.#store.get(tokenPath(id)) : undefined;
    const record = carried ?? (stored && decodeTokenRecord(stored.value));
    if (record === undefined || pending.changed) return undefined;
    const parent = record.parent === '' ? undefined : await this.#read({ id: record.parent }, key, pending);
    // A new token may have the id of a revoked parent; it does not inherit the children.
    if (pending.changed || (record.parent !== '' && parent?.accessorId !== record.parentAccessorId)) return undefined;
    const mount = record.mount === '' ? undefined : await this.#mount(record.mount, pending);
    if (pending.changed || (record.mount !== '' && mount === undefined)) return undefined;
    const accessorId = accessorIdOf(key, record.accessor);
    return this.#keep({
      id,
      record,
      revision: stored?.revision ?? 0,
      accessorId,
      parent,
      mount,
      dropped: false,
      hashed: undefined,
      resolved: undefined,
    });
  }

  /** Returns the condition that the auth method of a token is unchanged; undefined when the method no longer exists. */
  async #mount(reference: string, pending: PendingLoad): Promise<Condition | undefined> {
    const { path, id } = parseMountReference(reference);
    const at = authMountPath(path);
    pending.ids.add(at);
    const stored = await this.#store.get(at);
    return stored !== undefined && decodeAuthMount(stored.value).id === id ? { path: at, revision: stored.revision } : undefined;
  }

  #keep(token: LoadedToken): LoadedToken {
    const before = this.#tokens.get(token.id);
    if (before !== undefined && isWhole(before)) return before;
    if (before !== undefined) this.#forget(before);
    // Ancestors count as just loaded: evicting an ancestor would drop the new token too.
    const ancestors = new Set<LoadedToken>();
    for (let each = token.parent; each !== undefined; each = each.parent) {
      ancestors.add(each);
      if (this.#tokens.get(each.id) !== each) continue;
      this.#tokens.delete(each.id);
      this.#tokens.set(each.id, each);
    }
    for (const oldest of this.#tokens.values()) {
      if (this.#bytes + bytesOf(token) <= this.#bytesMax || ancestors.has(oldest)) break;
      this.#forget(oldest);
    }
    this.#tokens.set(token.id, token);
    this.#bytes += bytesOf(token);
    return token;
  }

  #forget(token: LoadedToken): void {
    token.dropped = true;
    this.#changes += 1;
    if (this.#tokens.delete(token.id)) this.#bytes -= bytesOf(token);
    if (token.hashed !== undefined) this.#byHash.delete(token.hashed);
  }

  #changed(pending: PendingLoad): void {
    pending.changed = true;
    this.#changes += 1;
  }
}

/** Estimates the memory of a token: its strings and its entries in two maps. */
function bytesOf({ record }: LoadedToken): number {
  const { policies, boundCidrs, displayName, path, meta, source, groups } = record;
  const texts = [...policies, ...boundCidrs, ...groups, displayName, path, source, ...Object.keys(meta), ...Object.values(meta)];
  return texts.reduce((sum, { length }) => sum + 32 + 2 * length, 1024);
}

/** Returns whether neither the token nor an ancestor was dropped. */
function isWhole(token: LoadedToken): boolean {
  for (let each: LoadedToken | undefined = token; each !== undefined; each = each.parent) if (each.dropped) return false;
  return true;
}
