import type { LogIndex, NodeId, Status, Term } from '@transitd/raft-core';
import type { DurableLog } from '../storage/storage.ts';
import { LogCopy } from './log-copy.ts';

/** The checkers' view of one node over all its incarnations. */
export class ObservedNode {
  readonly id: NodeId;
  readonly disk: DurableLog;
  shadow: LogCopy;
  /** Status after the last event of the current incarnation; undefined before its first. */
  status: Status | undefined;
  /** Whether the current event truncated the node's log. */
  truncatedNow = false;
  /** The entries that this incarnation has truncated, both ends included: none of them can be on its disk any longer. */
  superseded: { readonly from: LogIndex; readonly to: LogIndex }[] = [];
  /**
   * `awaited`: the core has accepted a snapshot that is not installed yet, and hands out nothing that follows it until then. `inForce`: the
   * snapshot is on disk, and not all entries that were received meanwhile were handed out yet; they come with the next batches.
   */
  install: 'none' | 'awaited' | 'inForce' = 'none';
  /** Index up to which the node's committed entries have been compared. */
  commitChecked: LogIndex = 0;
  /** Entries that were durable before the disk was damaged on purpose: they were stored when they were acknowledged. */
  #lost: { readonly from: LogIndex; readonly terms: readonly Term[] } | undefined;

  constructor(disk: DurableLog) {
    this.id = disk.nodeId;
    this.disk = disk;
    this.shadow = new LogCopy(disk.base);
  }

  /** Returns whether this node's disk has the entry, as an entry or within the state. */
  stored(index: LogIndex, term: Term): boolean {
    if (index <= this.disk.base.index || this.disk.entry(index)?.term === term) return true;
    return this.#lost !== undefined && (index < this.#lost.from || this.#lost.terms[index - this.#lost.from] === term);
  }

  /** Keeps the durable entries; called before the disk is damaged. */
  remember(): void {
    this.#lost = { from: this.disk.base.index + 1, terms: this.disk.entries.map(({ term }) => term) };
  }
}
