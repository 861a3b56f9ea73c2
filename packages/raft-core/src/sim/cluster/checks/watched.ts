import type { Status } from '../../../core/raft-core.ts';
import type { LogIndex, NodeId, Term } from '../../../types.ts';
import type { DurableLog } from '../storage/storage.ts';
import { LogShadow } from './log-shadow.ts';

/** One node as the checkers know it, over all its runs. */
export class Watched {
  readonly id: NodeId;
  readonly disk: DurableLog;
  shadow: LogShadow;
  /** After the last event of the present run; undefined before its first. */
  status: Status | undefined;
  /** Its log was cut back in the present event. */
  truncatedNow = false;
  /**
   * `awaited`: the core has decided for a snapshot that is not in force yet, and hands out nothing that follows it before. `inForce`:
   * it is on the disk, and nothing was handed out since: what was taken in meanwhile comes with the next batch.
   */
  install: 'none' | 'awaited' | 'inForce' = 'none';
  /** Up to there its committed entries have been compared. */
  commitChecked: LogIndex = 0;
  /** Entries that were durable here before the disk was damaged on purpose: they were stored when they were acknowledged. */
  #lost: { readonly from: LogIndex; readonly terms: readonly Term[] } | undefined;

  constructor(disk: DurableLog) {
    this.id = disk.nodeId;
    this.disk = disk;
    this.shadow = new LogShadow(disk.base);
  }

  /** Whether the entry is on this node's disk, as itself or within the state. */
  stored(index: LogIndex, term: Term): boolean {
    if (index <= this.disk.base.index || this.disk.entry(index)?.term === term) return true;
    return this.#lost !== undefined && (index < this.#lost.from || this.#lost.terms[index - this.#lost.from] === term);
  }

  /** Called before damage is done to the disk. */
  remember(): void {
    this.#lost = { from: this.disk.base.index + 1, terms: this.disk.entries.map(({ term }) => term) };
  }
}
