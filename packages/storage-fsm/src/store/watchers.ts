import type { Change, Changes } from './store.ts';

type Listener = (changes: Changes) => void;

/** The listeners, each with the prefix that it watches. */
export class Watchers {
  /** Changes that no listener knows yet. */
  #noted: 'everything' | Change[] = [];
  readonly #watchers = new Set<{ readonly prefix: string; readonly listener: Listener }>();

  /** Adds a listener; returns a function that removes it. */
  add(prefix: string, listener: Listener): () => void {
    const watcher = { prefix, listener };
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /** Keeps changes until {@link publish}. */
  note(changes: Changes): void {
    if (changes === 'everything') this.#noted = changes;
    else if (this.#noted !== 'everything') for (const change of changes) this.#noted.push(change);
  }

  /** Notifies the listeners of all changes noted since the last call. */
  publish(): void {
    const noted = this.#noted;
    if (noted.length === 0) return;
    this.#noted = [];
    this.notify(noted);
  }

  /** Calls each listener once with all changes below its prefix, in the order of the writes, or with `everything`. */
  notify(changes: Changes): void {
    for (const { prefix, listener } of [...this.#watchers]) {
      const seen = changes === 'everything' ? changes : changes.filter(({ path }) => path.startsWith(prefix));
      if (seen.length > 0) listener(seen);
    }
  }
}
