import type { Change, Store } from '@transitd/storage-fsm';
import type { Principal } from './principal.ts';
import { accessorIdOf, type TokenKey } from './token-key.ts';
import { tokenPath, tokenPrefix } from './token-paths.ts';
import { decodeTokenRecord } from './token-record.ts';
import type { Lineage } from './token-transactions.ts';

/** A token in memory. What it stands for is kept with it, as long as the policies are those of `generation`. */
export interface LoadedToken extends Lineage {
  readonly parent: LoadedToken | undefined;
  /** Its record has changed or gone, or there was no room: not to be used any more, and nothing below it. */
  dropped: boolean;
  /** SHA-256 of the token, once someone has shown it. */
  shown: string | undefined;
  granted: { readonly principal: Principal; readonly generation: number } | undefined;
}

/** A load under way; `changed` once something that it may have read is not so any more. */
interface Look {
  readonly ids: Set<string>;
  changed: boolean;
}

/**
 * Whether a token is good now: neither it nor anything above it has been dropped, is used up or has reached its time. So whoever revokes a
 * token, in one write, has revoked all that came from it.
 */
export function isGood(token: LoadedToken, now: number): boolean {
  for (let each: LoadedToken | undefined = token; each !== undefined; each = each.parent)
    if (each.dropped || each.record.usesLeft < 0 || (each.record.expiresMs !== 0 && each.record.expiresMs <= now)) return false;
  return true;
}

/** When the first of it and those above it reaches its time, in milliseconds since the epoch; infinite when none does. */
export function goodUntilMs(token: LoadedToken): number {
  let earliest = Number.POSITIVE_INFINITY;
  for (let each: LoadedToken | undefined = token; each !== undefined; each = each.parent)
    if (each.record.expiresMs !== 0) earliest = Math.min(earliest, each.record.expiresMs);
  return earliest;
}

/** Tokens by their id, each with those above it; a change is seen within the apply that makes it. */
export class TokenCache {
  readonly #store: Store;
  readonly #key: TokenKey;
  readonly #loadedMax: number;
  readonly #tokens = new Map<string, LoadedToken>();
  /** By SHA-256 of the token, so that no token stays in memory and look-ups do not compare it. */
  readonly #byShown = new Map<string, LoadedToken>();
  readonly #looks = new Set<Look>();
  #changes = 0;

  constructor({ store, key, loadedMax }: { readonly store: Store; readonly key: TokenKey; readonly loadedMax: number }) {
    this.#store = store;
    this.#key = key;
    this.#loadedMax = loadedMax;
  }

  /** Grows with every change of a token that was in memory or being read. */
  get changes(): number {
    return this.#changes;
  }

  /** The token with this SHA-256, if it was shown before; the caller asks whether it is good. */
  shown(hashed: string): LoadedToken | undefined {
    return this.#byShown.get(hashed);
  }

  /** Remembers that a token in memory has this SHA-256. */
  noteShown(token: LoadedToken, hashed: string): void {
    if (token.dropped) return;
    token.shown = hashed;
    this.#byShown.set(hashed, token);
  }

  /**
   * The token whose id `idOf` makes from the key, with all those above it; undefined when one of them is not there.
   * @throws AccessError `not_initialized`, `record_unreadable`; StoreError
   */
  async load(idOf: (key: Uint8Array) => string): Promise<LoadedToken | undefined> {
    const look: Look = { ids: new Set(), changed: false };
    this.#looks.add(look);
    try {
      for (;;) {
        look.changed = false;
        look.ids.clear();
        const key = this.#key.known ?? (await this.#key.read());
        if (look.changed) continue;
        const token = await this.#read(idOf(key), key, look);
        // What was read may be what was just taken away, or out of memory.
        if (!look.changed && (token === undefined || isWhole(token))) return token;
      }
    } finally {
      this.#looks.delete(look);
    }
  }

  /** Takes notice of changes below `access/token/`. */
  drop(changes: readonly Change[]): void {
    for (const { path } of changes) {
      const id = path.slice(tokenPrefix.length);
      for (const look of this.#looks) if (look.ids.has(id)) this.#changed(look);
      const token = this.#tokens.get(id);
      if (token !== undefined) this.#forget(token);
    }
  }

  /** Forgets every token. */
  clear(): void {
    for (const look of this.#looks) this.#changed(look);
    for (const token of [...this.#tokens.values()]) this.#forget(token);
    this.#changes += 1;
  }

  async #read(id: string, key: Uint8Array, look: Look): Promise<LoadedToken | undefined> {
    look.ids.add(id);
    const known = this.#tokens.get(id);
    if (known !== undefined && isWhole(known)) return known;
    const stored = await this.#store.get(tokenPath(id));
    if (stored === undefined || look.changed) return undefined;
    const record = decodeTokenRecord(stored.value);
    const parent = record.parent === '' ? undefined : await this.#read(record.parent, key, look);
    // Another token may have the id of the parent by now: what the first one made went with it.
    if (look.changed || (record.parent !== '' && parent?.accessorId !== record.parentAccessorId)) return undefined;
    const accessorId = accessorIdOf(key, record.accessor);
    return this.#keep({
      id,
      record,
      revision: stored.revision,
      accessorId,
      parent,
      dropped: false,
      shown: undefined,
      granted: undefined,
    });
  }

  #keep(token: LoadedToken): LoadedToken {
    const before = this.#tokens.get(token.id);
    if (before !== undefined && isWhole(before)) return before;
    if (before !== undefined) this.#forget(before);
    // What is above it counts as just loaded, or making room could drop it, and the token with it.
    const above = new Set<LoadedToken>();
    for (let each = token.parent; each !== undefined; each = each.parent) {
      above.add(each);
      this.#tokens.delete(each.id);
      this.#tokens.set(each.id, each);
    }
    const oldest = this.#tokens.size >= this.#loadedMax ? this.#tokens.values().next() : undefined;
    if (oldest?.done === false && !above.has(oldest.value)) this.#forget(oldest.value);
    this.#tokens.set(token.id, token);
    return token;
  }

  #forget(token: LoadedToken): void {
    token.dropped = true;
    this.#changes += 1;
    this.#tokens.delete(token.id);
    if (token.shown !== undefined) this.#byShown.delete(token.shown);
  }

  #changed(look: Look): void {
    look.changed = true;
    this.#changes += 1;
  }
}

/** Whether neither it nor anything above it was dropped. */
function isWhole(token: LoadedToken): boolean {
  for (let each: LoadedToken | undefined = token; each !== undefined; each = each.parent) if (each.dropped) return false;
  return true;
}
