import type { Changes } from './store.ts';

type Listener = (changes: Changes) => void;

/** The listeners, each with the prefix that it watches. */
export class Watchers {
  readonly #watchers = new Set<{ readonly prefix: string; readonly listener: Listener }>();

  /** Adds a listener; returns a function that removes it. */
  add(prefix: string, listener: Listener): () => void {
    const watcher = { prefix, listener };
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Calls each listener once with all changes below its prefix, in the order of the writes, or with `everything`. */
  notify(changes: Changes): void {
    for (const { prefix, listener } of [...this.#watchers]) {
      const seen = changes === 'everything' ? changes : changes.filter(({ path }) => path.startsWith(prefix));
      if (seen.length > 0) listener(seen);
    }
  }
}
