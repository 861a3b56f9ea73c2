import type { LogIndex } from '@transitd/raft-core';
import type { Replica } from '@transitd/storage-fsm';

/** How often it is looked at for entries that change no record, and so are told to nobody. */
const lookMs = 20;

/** Waits until this node has applied entries. */
export class AppliedIndex {
  readonly #replica: Pick<Replica, 'status' | 'watch'>;

  constructor(replica: Pick<Replica, 'status' | 'watch'>) {
    this.#replica = replica;
  }

  get index(): LogIndex {
    return this.#replica.status().appliedIndex;
  }

  /** Resolves with whether everything up to `index` is applied, as soon as it is, or when the time has run out. */
  reached(index: LogIndex, withinMs: number): Promise<boolean> {
    if (this.index >= index) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (): void => {
        clearInterval(look);
        clearTimeout(deadline);
        unwatch();
        resolve(this.index >= index);
      };
      const endWhenReached = (): void => {
        if (this.index >= index) end();
      };
      // Told within the apply, before the index has moved.
      const unwatch = this.#replica.watch('', () => void setImmediate(endWhenReached));
      const look = setInterval(endWhenReached, lookMs);
      const deadline = setTimeout(end, withinMs);
    });
  }
}
