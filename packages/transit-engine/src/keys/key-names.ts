import { type Changes, countWhile, type PathPage, type Store } from '@transitd/storage-fsm';
import type { BudgetedCache, CacheBudget } from './cache-budget.ts';

/** Selects names after `after`, at most `limit`; all if `limit` is not positive. */
export interface ListRequest {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * A list that is too long to be held in memory: its first page and the others. No page is empty. Each page has the names as of the time
 * when it is read.
 */
export interface LongList {
  readonly first: readonly string[];
  readonly rest: AsyncGenerator<readonly string[]>;
}

/** Approximate maximum of bytes of a list in memory and of the text made from it. A larger list is read from the store page by page. */
const keptBytesMax = 16 * 1024 * 1024;
/** Approximate bytes of a name besides its characters, which count twice. */
const perNameBytes = 40;
/** Most names that are returned as one list when the list is not cached. */
const namesAtOnceMax = 10_000;
/** Maximum number of names added and removed since the list was made. After more changes, the list is read again. */
const changesMax = 10_000;

/**
 * The names of a mount's keys, in ascending byte order. They are read from the store once and then updated with each applied change, unless
 * there are too many to be held in memory. Only paths are read: with 300,000 keys, decrypting every record took 8 s. A path is not
 * authenticated, so an attacker who writes to the disk can add a name, whose key cannot be read or used.
 * Names are ASCII (`isKeyName`), so strings sort like their bytes.
 */
export class KeyNames implements BudgetedCache {
  readonly #store: Store;
  readonly #prefix: string;
  readonly #budget: CacheBudget;
  readonly #bytesMax: number;
  readonly #unwatch: () => void;
  /** The list as of some moment. It is replaced, never modified, so texts made from a list are valid while the list is the same object. */
  #names: readonly string[] | undefined;
  /** Approximate bytes of {@link #names}. */
  #bytes = 0;
  /** A read of the list in progress. */
  #reading: Promise<readonly string[] | undefined> | undefined;
  /** Set when the names were last found to be too many to be held in memory. */
  #isLong = false;
  /** Names added (true) and removed (false) since the list was made or, during a read, since the read began. */
  readonly #changed = new Map<string, boolean>();
  #closed = false;

  /**
   * @param prefix - prefix of the paths of key records
   * @param budget - memory for the lists of all mounts
   */
  constructor(store: Store, prefix: string, budget: CacheBudget) {
    this.#store = store;
    this.#prefix = prefix;
    this.#budget = budget;
    this.#bytesMax = Math.min(keptBytesMax, budget.bytesMax);
    budget.add(this);
    this.#unwatch = store.watch(prefix, (changes) => this.#apply(changes));
  }

  get bytes(): number {
    return this.#bytes;
  }

  giveUp(): void {
    this.#forget();
  }

  /**
   * Returns names as of the last applied change. The full list is the same object as before if no name was added or removed. Names that are
   * too many to be held in memory are returned as a {@link LongList}.
   */
  async list({ after = '', limit = 0 }: ListRequest = {}): Promise<readonly string[] | LongList> {
    const kept = this.#upToDate();
    // A caller that reads a long list in pages must not read all of it for each page.
    if (kept === undefined && limit > 0 && limit <= namesAtOnceMax) return this.#some({ after, limit });
    const all = kept ?? (limit > 0 ? undefined : await this.#whole());
    if (all === undefined) return this.#long({ after, limit });
    const first = firstAfter(all, after);
    return first === 0 && (limit <= 0 || limit >= all.length) ? all : all.slice(first, limit > 0 ? first + limit : undefined);
  }

  /** Drops the list and caches nothing from now on. */
  close(): void {
    this.#closed = true;
    this.#unwatch();
    this.#budget.remove(this);
    this.#forget();
  }

  #forget(): void {
    this.#names = undefined;
    this.#bytes = 0;
    this.#reading = undefined;
    this.#isLong = false;
    this.#changed.clear();
  }

  async #some(request: ListRequest): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const page of this.#pages(request)) names.push(...page);
    return names;
  }

  async #long(request: ListRequest): Promise<readonly string[] | LongList> {
    const rest = this.#pages(request);
    const first = await rest.next();
    return first.done === true ? [] : { first: first.value, rest };
  }

  async *#pages({ after = '', limit = 0 }: ListRequest): AsyncGenerator<readonly string[]> {
    let bytes = 0;
    for await (const names of readNames(this.#store, this.#prefix, { after, limit })) {
      bytes += bytesOf(names);
      yield names;
    }
    if (after === '' && limit <= 0 && bytes <= this.#bytesMax) this.#isLong = false;
  }

  /** Returns all names, or undefined if they are too many. */
  async #whole(): Promise<readonly string[] | undefined> {
    const kept = this.#upToDate();
    if (kept !== undefined || this.#isLong) return kept;
    return this.#reading ?? this.#read();
  }

  #read(): Promise<readonly string[] | undefined> {
    const reading: Promise<readonly string[] | undefined> = this.#readAll().then(
      async (read) => {
        // The list was dropped during this read, with the changes noted for it. A caller that joined the read may know one of them: read
        // again.
        if (this.#reading !== reading) return this.#closed || read === undefined ? read : this.#whole();
        this.#reading = undefined;
        if (read !== undefined) return this.#keep(changed(read, this.#changed));
        this.#isLong = true;
        this.#changed.clear();
        return undefined;
      },
      (error: unknown) => {
        if (this.#reading === reading) this.#forget();
        throw error;
      },
    );
    if (!this.#closed) this.#reading = reading;
    return reading;
  }

  async #readAll(): Promise<readonly string[] | undefined> {
    const all: string[] = [];
    let bytes = 0;
    for await (const names of readNames(this.#store, this.#prefix)) {
      bytes += bytesOf(names);
      if (bytes > this.#bytesMax) return undefined;
      for (const name of names) all.push(name);
    }
    return all;
  }

  #apply(changes: Changes): void {
    if (changes === 'everything') {
      this.#forget();
      return;
    }
    if (this.#names === undefined && this.#reading === undefined) return;
    for (const { path, deleted } of changes) {
      const name = path.slice(this.#prefix.length);
      if (this.#names !== undefined && holds(this.#names, name) !== deleted) this.#changed.delete(name);
      else this.#changed.set(name, !deleted);
    }
    if (this.#reading === undefined && this.#changed.size > changesMax) this.#forget();
  }

  #upToDate(): readonly string[] | undefined {
    if (this.#names === undefined || this.#changed.size === 0) return this.#names;
    return this.#keep(changed(this.#names, this.#changed));
  }

  #keep(names: readonly string[]): readonly string[] {
    const bytes = bytesOf(names);
    this.#changed.clear();
    this.#isLong = bytes > this.#bytesMax;
    this.#names = this.#isLong ? undefined : names;
    this.#bytes = this.#isLong ? 0 : bytes;
    this.#budget.grew(this);
    return names;
  }
}

/** Returns the list with the added names and without the removed ones; the same list if there are none. */
function changed(names: readonly string[], changes: ReadonlyMap<string, boolean>): readonly string[] {
  const pieces: (readonly string[])[] = [];
  let from = 0;
  for (const name of [...changes.keys()].sort()) {
    const next = firstAfter(names, name);
    const wasThere = names[next - 1] === name;
    const isThere = changes.get(name) === true;
    if (wasThere === isThere) continue;
    pieces.push(names.slice(from, wasThere ? next - 1 : next), isThere ? [name] : []);
    from = next;
  }
  return pieces.length === 0 ? names : [...pieces, names.slice(from)].flat();
}

/** Returns the index of the first name greater than `after`. */
const firstAfter = (names: readonly string[], after: string): number => countWhile(names, (name) => name <= after);

const holds = (names: readonly string[], name: string): boolean => names[firstAfter(names, name) - 1] === name;

/** A longer `after` is cut to this length, because paths are limited. It exceeds the longest name, so no name is skipped. */
const afterLengthMax = 600;

const bytesOf = (names: readonly string[]): number => names.reduce((sum, name) => sum + 2 * name.length + perNameBytes, 0);

async function* readNames(
  store: Store,
  prefix: string,
  { after = '', limit = 0 }: ListRequest = {},
): AsyncGenerator<readonly string[]> {
  let wanted = limit > 0 ? limit : Number.POSITIVE_INFINITY;
  let from: string | undefined = prefix + after.slice(0, afterLengthMax).toWellFormed();
  while (from !== undefined && wanted > 0) {
    const page: PathPage = await store.paths({ prefix, after: from });
    // A substring would keep the whole path in memory, so the name is copied.
    const names = page.paths.slice(0, wanted).map((path) => Buffer.from(path.slice(prefix.length)).toString('latin1'));
    if (names.length > 0) yield names;
    wanted -= names.length;
    from = page.next;
  }
}
