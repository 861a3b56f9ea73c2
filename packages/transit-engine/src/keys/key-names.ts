import type { Changes, RangePage, Store } from '@transitd/storage-fsm';

/** Names behind `after`, `limit` of them at most; all without a positive limit. */
export interface ListRequest {
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/** What a list that is kept takes up at most, about, in bytes, and the text that is made of it. A longer one is read from the store. */
const keptBytesMax = 16 * 1024 * 1024;
/** What a name takes up beside its characters, about; these are there twice. */
const perNameBytes = 40;
/** Names that came and went since the list was made; when there are more it is read anew. */
const changesMax = 10_000;

/**
 * The names of a mount's keys, ascending by their bytes: read from the store once, which decrypts every key's record, and from then on
 * kept up with what is applied. They are ASCII (`isKeyName`), so strings sort as their bytes do.
 */
export class KeyNames {
  readonly #store: Store;
  readonly #prefix: string;
  readonly #unwatch: () => void;
  /** As of some moment. It is replaced, never changed: what was made of a list is right for as long as it is the same one. */
  #names: readonly string[] | undefined;
  /** A list that is being read. */
  #reading: Promise<readonly string[]> | undefined;
  /** Names that came (true) and went since the list was made; while it is being read, since that began. */
  readonly #changed = new Map<string, boolean>();
  #closed = false;

  /** @param prefix - of the paths of the keys' records */
  constructor(store: Store, prefix: string) {
    this.#store = store;
    this.#prefix = prefix;
    this.#unwatch = store.watch(prefix, (changes) => this.#apply(changes));
  }

  /** As applied here. All of them are the very same list as before while none came or went. */
  async list({ after = '', limit = 0 }: ListRequest = {}): Promise<readonly string[]> {
    const kept = this.#upToDate();
    // Whoever reads a long list page by page is not to pay for all of it with each.
    if (kept === undefined && limit > 0) return readNames(this.#store, this.#prefix, { after, limit });
    const all = kept ?? (await (this.#reading ?? this.#read()));
    const first = firstAfter(all, after);
    return first === 0 && (limit <= 0 || limit >= all.length) ? all : all.slice(first, limit > 0 ? first + limit : undefined);
  }

  /** Nothing is kept any more. */
  close(): void {
    this.#closed = true;
    this.#unwatch();
    this.#forget();
  }

  #forget(): void {
    this.#names = undefined;
    this.#reading = undefined;
    this.#changed.clear();
  }

  #read(): Promise<readonly string[]> {
    const reading: Promise<readonly string[]> = readNames(this.#store, this.#prefix).then(
      (read) => {
        // Whoever joined late has maybe seen a change that was forgotten with this.
        if (this.#reading !== reading) return this.#closed ? read : this.list();
        this.#reading = undefined;
        return this.#keep(changed(read, this.#changed));
      },
      (error: unknown) => {
        if (this.#reading === reading) this.#forget();
        throw error;
      },
    );
    if (!this.#closed) this.#reading = reading;
    return reading;
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
    this.#changed.clear();
    const bytes = names.reduce((sum, name) => sum + 2 * name.length + perNameBytes, 0);
    this.#names = bytes <= keptBytesMax ? names : undefined;
    return names;
  }
}

/** The list with what came and without what went; the same one when that is nothing. */
function changed(names: readonly string[], changes: ReadonlyMap<string, boolean>): readonly string[] {
  const pieces: (readonly string[])[] = [];
  let from = 0;
  for (const name of [...changes.keys()].sort()) {
    const behind = firstAfter(names, name);
    const wasThere = names[behind - 1] === name;
    const isThere = changes.get(name) === true;
    if (wasThere === isThere) continue;
    pieces.push(names.slice(from, wasThere ? behind - 1 : behind), isThere ? [name] : []);
    from = behind;
  }
  return pieces.length === 0 ? names : [...pieces, names.slice(from)].flat();
}

/** Where the names behind `after` begin in a list. */
function firstAfter(names: readonly string[], after: string): number {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((names[middle] ?? '') > after) high = middle;
    else low = middle + 1;
  }
  return low;
}

const holds = (names: readonly string[], name: string): boolean => names[firstAfter(names, name) - 1] === name;

/** More than the longest name, so that a longer `after` can be cut: no name lies between, and a path has an end. */
const afterLengthMax = 600;

async function readNames(store: Store, prefix: string, { after = '', limit = 0 }: ListRequest = {}): Promise<string[]> {
  const wanted = limit > 0 ? limit : Number.POSITIVE_INFINITY;
  const names: string[] = [];
  let from: string | undefined = prefix + after.slice(0, afterLengthMax).toWellFormed();
  while (from !== undefined && names.length < wanted) {
    const page: RangePage = await store.range({ prefix, after: from });
    // A part of a string would keep all of it.
    for (const { path } of page.records.slice(0, wanted - names.length))
      names.push(Buffer.from(path.slice(prefix.length)).toString('latin1'));
    from = page.next;
  }
  return names;
}
