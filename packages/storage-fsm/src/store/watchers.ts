import type { Changes } from './store.ts';

type Listener = (changes: Changes) => void;

/** Who wants to know of changes below which prefix. */
export class Watchers {
  readonly #watchers = new Set<{ readonly prefix: string; readonly listener: Listener }>();

  /** Returns the function that ends the watch. */
  add(prefix: string, listener: Listener): () => void {
    const watcher = { prefix, listener };
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Calls each listener whose prefix has changes, once, with all of them in the order of the writes; each for `everything`. */
  tell(changes: Changes): void {
    for (const { prefix, listener } of [...this.#watchers]) {
      const seen = changes === 'everything' ? changes : changes.filter(({ path }) => path.startsWith(prefix));
      if (seen.length > 0) listener(seen);
    }
  }
}
