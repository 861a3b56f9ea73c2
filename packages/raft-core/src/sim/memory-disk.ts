import { bootstrapBase } from '../confchange/conf-state.ts';
import { invariant } from '../invariant.ts';
import type { LogStart } from '../ports.ts';
import type { Entry, HardState, LogIndex, NodeId, SnapshotMeta } from '../types.ts';
import { MemoryLog, type MemoryLogOptions } from './memory-log.ts';
import type { Scheduler } from './sim-clock.ts';

/** What of a simulated node's log survives a crash. Each `open` is one start of the node. */
export class MemoryDisk {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  hardState: HardState = { term: 0, vote: 0, commit: 0 };
  base: SnapshotMeta;
  /** Contiguous, from `base.index + 1` on. */
  entries: Entry[] = [];
  #incarnation = 0;

  constructor({ nodeId, clusterId }: { readonly nodeId: NodeId; readonly clusterId: string }) {
    this.nodeId = nodeId;
    this.clusterId = clusterId;
    this.base = bootstrapBase(nodeId);
  }

  get lastIndex(): LogIndex {
    return this.base.index + this.entries.length;
  }

  open(scheduler: Scheduler, options: Partial<MemoryLogOptions> = {}): MemoryLog {
    this.#incarnation += 1;
    return new MemoryLog(this, scheduler, options);
  }

  start(): LogStart {
    const { nodeId, clusterId, hardState, base, lastIndex, entries } = this;
    const terms: { term: number; firstIndex: number }[] = [];
    for (const { term, index } of entries) {
      if (terms.at(-1)?.term !== term) terms.push({ term, firstIndex: index });
    }
    const confEntries = entries.filter(({ type }) => type === 'conf');
    return { nodeId, clusterId, incarnation: this.#incarnation, hardState, base, lastIndex, terms, confEntries };
  }

  /** Stores one entry; it supersedes all from its index on. */
  store(entry: Entry): void {
    const { index } = entry;
    invariant(index > this.base.index && index <= this.lastIndex + 1, 'a log has no gap', { index, lastIndex: this.lastIndex });
    this.entries.length = index - this.base.index - 1;
    this.entries.push(entry);
  }

  entry(index: LogIndex): Entry | undefined {
    return this.entries[index - this.base.index - 1];
  }

  compact(base: SnapshotMeta): void {
    this.entries = this.entries.filter(({ index }) => index > base.index);
    this.base = base;
  }
}
