import { comparePaths } from '@transitd/storage-fsm';

/** Paths in the order of their UTF-8 bytes. */
export class SortedPaths {
  readonly #paths: string[];

  constructor(paths: Iterable<string>) {
    this.#paths = [...paths].sort(comparePaths);
  }

  /** The path must not be among them. */
  add(path: string): void {
    this.#paths.splice(this.#indexAfter(path), 0, path);
  }

  delete(path: string): void {
    const index = this.#indexAfter(path) - 1;
    if (this.#paths[index] === path) this.#paths.splice(index, 1);
  }

  /** Yields the paths that start with `prefix` and come after `after`. */
  *below({ prefix, after = '' }: { readonly prefix: string; readonly after?: string }): Generator<string> {
    const isLater = comparePaths(after, prefix) >= 0;
    let index = isLater ? this.#indexAfter(after) : this.#indexFrom(prefix);
    for (let path = this.#paths[index]; path?.startsWith(prefix); path = this.#paths[index]) {
      yield path;
      index += 1;
    }
  }

  #indexFrom(path: string): number {
    const index = this.#indexAfter(path);
    return this.#paths[index - 1] === path ? index - 1 : index;
  }

  /** Returns the index of the first path after `path`. */
  #indexAfter(path: string): number {
    let low = 0;
    let high = this.#paths.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (comparePaths(this.#paths[middle] ?? '', path) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
