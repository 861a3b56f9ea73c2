import {
  bootstrapBase,
  type Done,
  type Entry,
  type HardState,
  invariant,
  LogDamage,
  type LogIndex,
  type LogStart,
  type LogStore,
  type LogWrite,
  type NodeId,
  type SnapshotMeta,
} from '@transitd/raft-core';
import { HardStateSlots } from './hard-state-slots.ts';
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

export interface MemoryLogOptions {
  /** Returns how long the next sync, read or compaction takes. */
  delayMs(): number;
  /** Called for every requested write. */
  onWrite?(write: LogWrite): void;
}

/** Interval at which the high-water mark is raised to the end of the log. */
const MARK_EVERY_MS = 200;

export type LogOperation = 'write' | 'read' | 'compact' | 'close';

/** One piece that reaches the disk separately: a slot of the hard state or an entry. */
type Piece = { readonly hardState: HardState; readonly slot: 0 | 1 } | { readonly entry: Entry };

interface Sync {
  readonly pieces: Piece[];
  readonly dones: Done[];
}

/**
 * A log in memory that behaves like one on disk. A write is durable only after its sync, and writes that arrive during a sync share the
 * next one. A hard state is synced before the entries that come with it. A crash keeps a prefix of the data that was being synced. Each
 * step of a sync is a separate event, so that a test can crash between any two.
 */
export class MemoryLog implements LogStore {
  readonly start: LogStart;
  readonly #disk: MemoryDisk;
  readonly #scheduler: Scheduler;
  readonly #delayMs: () => number;
  readonly #onWrite: ((write: LogWrite) => void) | undefined;
  #markedAtMs: number;
  #waiting: Sync[] = [];
  #syncing: Sync | undefined;
  #commitNoted = 0;
  readonly #faults = new Map<LogOperation, { readonly error: Error; readonly landed: number }>();
  #ended: Error | undefined;
  /** Reads and compactions under way. */
  #operations = 0;
  /** Requested writes and reads, and finished syncs: fewer syncs than writes show group commit. */
  readonly counts = { syncs: 0, writes: 0, reads: 0 };

  constructor(disk: MemoryDisk, scheduler: Scheduler, { delayMs = () => 1, onWrite }: Partial<MemoryLogOptions>) {
    this.start = disk.start();
    this.#disk = disk;
    this.#scheduler = scheduler;
    this.#delayMs = delayMs;
    this.#onWrite = onWrite;
    this.#markedAtMs = scheduler.now();
  }

  /** The number of pieces in the sync under way. */
  get unsynced(): number {
    return this.#syncing?.pieces.length ?? 0;
  }

  /**
   * Makes the next operation of this kind fail, and with it the log. If it is a write, its first `landed` pieces are stored nevertheless.
   */
  failNext(operation: LogOperation, error: Error, { landed = 0 }: { readonly landed?: number } = {}): void {
    this.#faults.set(operation, { error, landed });
  }

  /** Cancels every failure that has not happened yet. */
  mend(): void {
    this.#faults.clear();
  }

  /**
   * Ends the process: the first `landed` pieces of what was being synced are stored. The rest is not, or, if `torn`, is stored after a
   * hole.
   */
  crash({ landed, torn = false }: { readonly landed: number; readonly torn?: boolean }): void {
    const pieces = this.#syncing?.pieces ?? [];
    for (const piece of pieces.slice(0, landed)) this.#store(piece);
    const last = pieces[landed];
    if (torn && last !== undefined && landed + 1 < pieces.length && 'entry' in last) this.#disk.tear();
    this.#ended = new Error('crashed');
  }

  write(write: LogWrite, done: Done): void {
    // Called even if the log has already failed: the node may not know that yet, and has accepted the entries.
    this.#onWrite?.(write);
    if (this.#refuses(done)) return;
    const { hardState, entries } = write;
    this.counts.writes += 1;
    if (hardState !== undefined) {
      const pieces: Piece[] = [
        { hardState, slot: 0 },
        { hardState, slot: 1 },
      ];
      this.#waiting.push({ pieces, dones: entries.length > 0 ? [] : [done] });
    }
    if (entries.length > 0) this.#waiting.push({ pieces: entries.map((entry) => ({ entry })), dones: [done] });
    this.#sync();
  }

  noteCommit(index: LogIndex): void {
    this.#commitNoted = Math.max(this.#commitNoted, index);
  }

  read(
    range: { lo: LogIndex; hi: LogIndex; maxBytes: number },
    done: (error: Error | undefined, entries: readonly Entry[]) => void,
  ): void {
    this.counts.reads += 1;
    const found = this.#collect(range);
    this.#operate('read', (error) => {
      if (error !== undefined || found instanceof Error) done(error ?? (found instanceof Error ? found : undefined), []);
      else done(undefined, found);
    });
  }

  compact(base: SnapshotMeta, done: Done): void {
    this.#operate('compact', (error) => {
      if (error === undefined) this.#disk.compact(base);
      done(error);
    });
  }

  /** Closes the log; nothing may be under way. */
  close(done: Done): void {
    if (this.#refuses(done)) return;
    const busy =
      this.#syncing !== undefined || this.#operations > 0 ? new Error('closed while an operation is under way') : undefined;
    const error = this.#faults.get('close')?.error ?? busy;
    this.#ended = error ?? new Error('the log is closed');
    if (error === undefined) this.#disk.raiseMark();
    this.#scheduler.afterTurn(() => done(error));
  }

  /** The entries as they are now: later writes and compactions do not change a read under way. */
  #collect({ lo, hi, maxBytes }: { readonly lo: LogIndex; readonly hi: LogIndex; readonly maxBytes: number }): Entry[] | Error {
    const entries: Entry[] = [];
    let bytes = 0;
    for (let index = lo; index <= hi; index++) {
      const entry = this.#disk.entry(index);
      if (entry === undefined) return new Error(`entry ${index} is not in the log`);
      bytes += entry.data.length;
      if (bytes > maxBytes && entries.length > 0) break;
      entries.push(entry);
    }
    return entries;
  }

  #operate(operation: 'read' | 'compact', act: (error: Error | undefined) => void): void {
    if (this.#refuses(act)) return;
    this.#operations += 1;
    this.#scheduler.after(this.#delayMs(), () => {
      this.#operations -= 1;
      this.#ended ??= this.#faults.get(operation)?.error;
      act(this.#ended);
    });
  }

  #refuses(done: Done): boolean {
    const error = this.#ended;
    if (error === undefined) return false;
    this.#scheduler.afterTurn(() => done(error));
    return true;
  }

  #sync(): void {
    if (this.#syncing !== undefined || this.#ended !== undefined) return;
    const sync = this.#nextSync();
    if (sync === undefined) return;
    this.#syncing = sync;
    this.#scheduler.after(this.#delayMs(), () => this.#land(sync));
  }

  /** A hard state is synced alone; all entries waiting before the next hard state are synced together. */
  #nextSync(): Sync | undefined {
    const isHardState = ({ pieces: [first] }: Sync): boolean => first !== undefined && 'slot' in first;
    const firstHardState = this.#waiting.findIndex(isHardState);
    const count = firstHardState === 0 ? 1 : firstHardState < 0 ? this.#waiting.length : firstHardState;
    const joined = this.#waiting.splice(0, count);
    if (joined.length === 0) return undefined;
    return { pieces: joined.flatMap(({ pieces }) => pieces), dones: joined.flatMap(({ dones }) => dones) };
  }

  #land({ pieces, dones }: Sync): void {
    const fault = this.#ended === undefined ? this.#faults.get('write') : { error: this.#ended, landed: 0 };
    for (const piece of fault === undefined ? pieces : pieces.slice(0, fault.landed)) this.#store(piece);
    this.#ended ??= fault?.error;
    this.#syncing = undefined;
    const failed = fault === undefined ? [] : this.#waiting.splice(0).flatMap((sync) => sync.dones);
    if (fault === undefined) {
      this.counts.syncs += 1;
      this.#raiseMark();
    }
    this.#scheduler.after(0, () => {
      for (const done of [...dones, ...failed]) done(fault?.error);
    });
    this.#sync();
  }

  #raiseMark(): void {
    const nowMs = this.#scheduler.now();
    if (nowMs < this.#markedAtMs + MARK_EVERY_MS) return;
    this.#markedAtMs = nowMs;
    this.#disk.raiseMark();
  }

  #store(piece: Piece): void {
    if ('entry' in piece) this.#disk.store(piece.entry);
    const hardState = 'slot' in piece ? piece.hardState : this.#disk.hardState;
    const commit = Math.max(hardState.commit, this.#commitNoted, this.#disk.hardState.commit);
    if ('slot' in piece) this.#disk.storeSlot(piece.slot, { ...hardState, commit });
    else if (commit > hardState.commit) this.#disk.hardState = { ...hardState, commit };
  }
}
