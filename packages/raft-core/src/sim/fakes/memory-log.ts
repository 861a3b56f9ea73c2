import type { Done, LogStart, LogStore, LogWrite } from '../../ports.ts';
import type { Entry, HardState, LogIndex, SnapshotMeta } from '../../types.ts';
import type { MemoryDisk } from './memory-disk.ts';
import type { Scheduler } from './sim-clock.ts';

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
