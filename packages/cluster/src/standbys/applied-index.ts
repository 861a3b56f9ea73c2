import type { LogIndex } from '@transitd/raft-core';
import type { Replica } from '@transitd/storage-fsm';

/** Poll interval: entries that change no record notify no watcher. */
const pollMs = 20;

/** The index that this node has applied, and waiting for it. */
export class AppliedIndex {
  readonly #replica: Pick<Replica, 'status' | 'watch'>;

  constructor(replica: Pick<Replica, 'status' | 'watch'>) {
    this.#replica = replica;
  }

  get index(): LogIndex {
    return this.#replica.status().appliedIndex;
  }

  /** Resolves with true as soon as `index` is applied, or with false after `withinMs`. */
  reached(index: LogIndex, withinMs: number): Promise<boolean> {
    if (this.index >= index) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (): void => {
        clearInterval(poll);
        clearTimeout(deadline);
        unwatch();
        resolve(this.index >= index);
      };
      const endWhenReached = (): void => {
        if (this.index >= index) end();
      };
      // The watcher runs during the apply, before the applied index advances.
      const unwatch = this.#replica.watch('', () => void setImmediate(endWhenReached));
      const poll = setInterval(endWhenReached, pollMs);
      const deadline = setTimeout(end, withinMs);
    });
  }
}
