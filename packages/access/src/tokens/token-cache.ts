import type { Change, Condition, Store } from '@transitd/storage-fsm';
import { authMountPath, decodeAuthMount, parseMountReference } from '../mounts/auth-mount.ts';
import type { Principal } from './principal.ts';
import type { StoredKey } from './stored-key.ts';
import { accessorIdOf } from './token.ts';
import { tokenPath, tokenPrefix } from './token-paths.ts';
import { decodeTokenRecord, type TokenRecord } from './token-record.ts';
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

/** What is looked for: a token by its id, with its record where the token itself carries it. */
export interface TokenLookup {
  readonly id: string;
  readonly record?: TokenRecord;
}

/** A load under way; `changed` once something that it may have read is not so any more. */
interface Look {
  /** Ids of tokens, paths of login methods. */
  readonly ids: Set<string>;
  changed: boolean;
}

/**
 * Whether a token is good now: neither it nor anything above it has been dropped, is used up or has reached its time. So whoever revokes a
 * token, in one write, has revoked all that came from it.
 */
export function isValid(token: LoadedToken, now: number): boolean {
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
  readonly #key: StoredKey;
  readonly #bytesMax: number;
  readonly #tokens = new Map<string, LoadedToken>();
  #bytes = 0;
  /** By SHA-256 of the token, so that no token stays in memory and look-ups do not compare it. */
  readonly #byShown = new Map<string, LoadedToken>();
  readonly #looks = new Set<Look>();
  #changes = 0;

  constructor({ store, key, bytesMax }: { readonly store: Store; readonly key: StoredKey; readonly bytesMax: number }) {
    this.#store = store;
    this.#key = key;
    this.#bytesMax = bytesMax;
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
   * The token that `seek` names, with all those above it; undefined when one of them is not there.
   * @param seek - gets the key under which tokens are hashed; it may be asked again
   * @throws AccessError `not_initialized`, `record_unreadable`; StoreError
   */
  async load(seek: (key: Uint8Array) => TokenLookup): Promise<LoadedToken | undefined> {
    const look: Look = { ids: new Set(), changed: false };
    this.#looks.add(look);
    try {
      for (;;) {
        look.changed = false;
        look.ids.clear();
        const key = this.#key.known ?? (await this.#key.read());
        if (look.changed) continue;
        const token = await this.#read(seek(key), key, look);
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

  /** Takes notice of changes below `access/auth/`: the tokens that a method made are looked at again. */
  dropOfMounts(changes: readonly Change[]): void {
    const paths = new Set(changes.map(({ path }) => path));
    for (const look of this.#looks) if ([...look.ids].some((id) => paths.has(id))) this.#changed(look);
    for (const token of [...this.#tokens.values()])
      if (token.mount !== undefined && paths.has(token.mount.path)) this.#forget(token);
  }

  /** Forgets every token. */
  clear(): void {
    for (const look of this.#looks) this.#changed(look);
    for (const token of [...this.#tokens.values()]) this.#forget(token);
    this.#changes += 1;
  }

  /** No token stands for anybody until its policies are looked at again: what they came to is let go. */
  releasePrincipals(): void {
    for (const token of this.#tokens.values()) token.granted = undefined;
  }

  async #read({ id, record: carried }: TokenLookup, key: Uint8Array, look: Look): Promise<LoadedToken | undefined> {
    look.ids.add(id);
    const known = this.#tokens.get(id);
    if (known !== undefined && isWhole(known)) return known;
    const stored = carried === undefined ? await this.#store.get(tokenPath(id)) : undefined;
    const record = carried ?? (stored && decodeTokenRecord(stored.value));
    if (record === undefined || look.changed) return undefined;
    const parent = record.parent === '' ? undefined : await this.#read({ id: record.parent }, key, look);
    // Another token may have the id of the parent by now: what the first one made went with it.
    if (look.changed || (record.parent !== '' && parent?.accessorId !== record.parentAccessorId)) return undefined;
    const mount = record.mount === '' ? undefined : await this.#mount(record.mount, look);
    if (look.changed || (record.mount !== '' && mount === undefined)) return undefined;
    const accessorId = accessorIdOf(key, record.accessor);
    return this.#keep({
      id,
      record,
      revision: stored?.revision ?? 0,
      accessorId,
      parent,
      mount,
      dropped: false,
      shown: undefined,
      granted: undefined,
    });
  }

  /** What holds while the login method is still there that a token names. */
  async #mount(reference: string, look: Look): Promise<Condition | undefined> {
    const { path, id } = parseMountReference(reference);
    const at = authMountPath(path);
    look.ids.add(at);
    const stored = await this.#store.get(at);
    return stored !== undefined && decodeAuthMount(stored.value).id === id ? { path: at, revision: stored.revision } : undefined;
  }

  #keep(token: LoadedToken): LoadedToken {
    const before = this.#tokens.get(token.id);
    if (before !== undefined && isWhole(before)) return before;
    if (before !== undefined) this.#forget(before);
    // What is above it counts as just loaded, or making room could drop it, and the token with it.
    const above = new Set<LoadedToken>();
    for (let each = token.parent; each !== undefined; each = each.parent) {
      above.add(each);
      if (this.#tokens.get(each.id) !== each) continue;
      this.#tokens.delete(each.id);
      this.#tokens.set(each.id, each);
    }
    for (const oldest of this.#tokens.values()) {
      if (this.#bytes + bytesOf(token) <= this.#bytesMax || above.has(oldest)) break;
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
    if (token.shown !== undefined) this.#byShown.delete(token.shown);
  }

  #changed(look: Look): void {
    look.changed = true;
    this.#changes += 1;
  }
}

/** About what a token takes in memory: its texts, and its place in two maps. */
function bytesOf({ record }: LoadedToken): number {
  const { policies, boundCidrs, displayName, path, meta, source, groups } = record;
  const texts = [...policies, ...boundCidrs, ...groups, displayName, path, source, ...Object.keys(meta), ...Object.values(meta)];
  return texts.reduce((sum, { length }) => sum + 32 + 2 * length, 1024);
}

/** Whether neither it nor anything above it was dropped. */
function isWhole(token: LoadedToken): boolean {
  for (let each: LoadedToken | undefined = token; each !== undefined; each = each.parent) if (each.dropped) return false;
  return true;
}
