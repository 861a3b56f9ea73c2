import { bootstrapBase } from '../../confchange/conf-state.ts';
import { invariant } from '../../invariant.ts';
import { LogDamage } from '../../log/log-damage.ts';
import type { LogStart } from '../../ports.ts';
import type { Entry, HardState, LogIndex, NodeId, SnapshotMeta } from '../../types.ts';
import { HardStateSlots } from './hard-state-slots.ts';
import { MemoryLog, type MemoryLogOptions } from './memory-log.ts';
import type { Scheduler } from './sim-clock.ts';

export interface MemoryDiskOptions {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  /** The founder's configuration by default; a joiner's is empty. */
  readonly base?: SnapshotMeta;
}

/** The part of a simulated node's log that survives a crash. Each `open` is one start of the node. */
export class MemoryDisk {
  readonly nodeId: NodeId;
  readonly clusterId: string;
  base: SnapshotMeta;
  /** Contiguous, from `base.index + 1` on. */
  entries: Entry[] = [];
  readonly #slots = new HardStateSlots({ term: 0, vote: 0, commit: 0 });
  #incarnation = 0;
  /** High-water mark: an entry that was durable when the mark was last raised. A log that ends below it has lost its tail. */
  #mark: LogIndex;
  /** The first entry that is no longer readable. */
  #rotten = Number.POSITIVE_INFINITY;
  /** Pieces of a write are stored after the end of the log, with a hole before them. */
  #torn = false;

  constructor({ nodeId, clusterId, base = bootstrapBase(nodeId) }: MemoryDiskOptions) {
    this.nodeId = nodeId;
    this.clusterId = clusterId;
    this.base = base;
    this.#mark = base.index;
  }

  get hardState(): HardState {
    return this.#slots.newest;
  }
  set hardState(hardState: HardState) {
    this.#slots.writeBoth(hardState);
  }
  get lastIndex(): LogIndex {
    return this.base.index + this.entries.length;
  }
  get mark(): LogIndex {
    return this.#mark;
  }
  /** True if the next start must truncate a half-written end. */
  get isTorn(): boolean {
    return this.#torn;
  }

  /** @throws LogDamage if durable data is unreadable or missing */
  open(scheduler: Scheduler, options: Partial<MemoryLogOptions> = {}): MemoryLog {
    this.#incarnation += 1;
    const end = Math.min(this.lastIndex, this.#rotten - 1);
    if (end < this.#mark) throw new LogDamage(`The log ends at entry ${end}, but entry ${this.#mark} was durable.`);
    this.entries.length = end - this.base.index;
    this.#rotten = Number.POSITIVE_INFINITY;
    this.#torn = false;
    this.#slots.writeBoth(this.#slots.newest);
    return new MemoryLog(this, scheduler, options);
  }

  start(): LogStart {
    const { nodeId, clusterId, hardState, base, lastIndex, entries } = this;
    const terms: { term: number; firstIndex: number }[] = [];
    for (const { term, index } of entries) {
      if (terms.at(-1)?.term !== term) terms.push({ term, firstIndex: index });
    }
    const confEntries = entries.filter(({ type }) => type === 'conf');
    const bytes = entries.reduce((sum, { data }) => sum + data.length, 0);
    return { nodeId, clusterId, incarnation: this.#incarnation, hardState, base, lastIndex, bytes, terms, confEntries };
  }

  /** Stores one entry; it supersedes everything from its index on. */
  store(entry: Entry): void {
    const { index } = entry;
    invariant(index > this.base.index && index <= this.lastIndex + 1, 'a log has no gap', { index, lastIndex: this.lastIndex });
    // Lowered before the truncation; otherwise a crash between the two would look like damage.
    this.#mark = Math.min(this.#mark, index - 1);
    this.entries.length = index - this.base.index - 1;
    this.entries.push(entry);
  }

  storeSlot(slot: 0 | 1, hardState: HardState): void {
    this.#slots.write(slot, hardState);
  }

  entry(index: LogIndex): Entry | undefined {
    return this.entries[index - this.base.index - 1];
  }

  compact(base: SnapshotMeta): void {
    this.entries = this.entries.filter(({ index }) => index > base.index);
    this.base = base;
    this.#mark = Math.max(this.#mark, base.index);
  }

  /** Starts over after a snapshot, in one step; term and vote stay. */
  install(base: SnapshotMeta): void {
    this.entries = [];
    this.base = base;
    this.#mark = base.index;
    this.#rotten = Number.POSITIVE_INFINITY;
  }

  raiseMark(): void {
    this.#mark = this.lastIndex;
  }

  tear(): void {
    this.#torn = true;
  }

  /** Makes a durable entry unreadable; the next start finds that out. */
  rotEntry(index: LogIndex): void {
    this.#rotten = Math.min(this.#rotten, index);
  }

  rotSlot(slot: 0 | 1): void {
    this.#slots.rot(slot);
  }
}
