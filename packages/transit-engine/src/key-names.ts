import type { Changes, RangePage, Store } from '@transitd/storage-fsm';

/** What a list that is kept takes up at most, about, in bytes. A longer one is read from the store each time. */
const keptBytesMax = 16 * 1024 * 1024;
/** What a name takes up beside its characters, about. */
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

  /** All of them, as applied here: the very same list as before while none came or went. */
  async all(): Promise<readonly string[]> {
    if (this.#names === undefined) return this.#reading ?? this.#read();
    this.#names = this.#upToDate(this.#names);
    return this.#names;
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
        if (this.#reading !== reading) return this.#closed ? read : this.all();
        this.#reading = undefined;
        const names = this.#upToDate(read);
        if (bytesOf(names) <= keptBytesMax) this.#names = names;
        return names;
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

  #upToDate(names: readonly string[]): readonly string[] {
    if (this.#changed.size === 0) return names;
    const stayed = names.filter((name) => this.#changed.get(name) !== false);
    const came = [...this.#changed].filter(([name, isThere]) => isThere && !holds(names, name)).map(([name]) => name);
    this.#changed.clear();
    return [...stayed, ...came].sort();
  }
}

/** Where the names behind `after` begin in a list. */
export function firstBehind(names: readonly string[], after: string): number {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((names[middle] ?? '') > after) high = middle;
    else low = middle + 1;
  }
  return low;
}

const holds = (names: readonly string[], name: string): boolean => names[firstBehind(names, name) - 1] === name;

const bytesOf = (names: readonly string[]): number => names.reduce((bytes, name) => bytes + name.length + perNameBytes, 0);

async function readNames(store: Store, prefix: string): Promise<string[]> {
  const names: string[] = [];
  let after: string | undefined = prefix;
  while (after !== undefined) {
    const page: RangePage = await store.range({ prefix, after });
    for (const { path } of page.records) names.push(path.slice(prefix.length));
    after = page.next;
  }
  return names;
}
