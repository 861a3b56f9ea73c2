import { comparePaths, countWhile } from '@transitd/storage-fsm';

/** Most paths in one array: inserting into an array of millions would move megabytes. */
const runMax = 1024;

/** Paths in the order of their UTF-8 bytes. */
export class SortedPaths {
  /** Sorted arrays, none of them empty; all paths of one come before those of the next. */
  readonly #runs: string[][] = [];

  /** The path must not be among them. A path that comes after all others costs least. */
  add(path: string): void {
    const last = this.#runs.at(-1);
    if (last === undefined || comparePaths(last.at(-1) ?? '', path) < 0) {
      if (last !== undefined && last.length < runMax) last.push(path);
      else this.#runs.push([path]);
      return;
    }
    const at = this.#runOf(path);
    const run = this.#runs[at] ?? last;
    run.splice(indexAfter(run, path), 0, path);
    if (run.length > runMax) this.#runs.splice(at + 1, 0, run.splice(runMax / 2));
  }

  delete(path: string): void {
    const at = this.#runOf(path);
    const run = this.#runs[at];
    const index = run === undefined ? -1 : indexAfter(run, path) - 1;
    if (run?.[index] !== path) return;
    run.splice(index, 1);
    if (run.length === 0) this.#runs.splice(at, 1);
  }

  /** Yields the paths that start with `prefix` and come after `after`. The paths must not change meanwhile. */
  *below({ prefix, after = '' }: { readonly prefix: string; readonly after?: string }): Generator<string> {
    const isLater = comparePaths(after, prefix) >= 0;
    const start = isLater ? after : prefix;
    let at = this.#runOf(start);
    let index = indexAfter(this.#runs[at] ?? [], start);
    if (!isLater && this.#runs[at]?.[index - 1] === prefix) index -= 1;
    for (; at < this.#runs.length; at += 1, index = 0) {
      for (const path of (this.#runs[at] ?? []).slice(index)) {
        if (!path.startsWith(prefix)) return;
        yield path;
      }
    }
  }

  /** Returns the index of the array that has the path or would have it; 0 if no array exists. */
  #runOf(path: string): number {
    const after = countWhile(this.#runs, ([first = '']) => comparePaths(first, path) <= 0);
    return Math.max(0, after - 1);
  }
}

/** Returns the index of the first path after `path`. */
const indexAfter = (paths: readonly string[], path: string): number => countWhile(paths, (one) => comparePaths(one, path) <= 0);
