import type { Done, LogStart, LogStore, LogWrite } from '../ports.ts';
import type { Entry, HardState, LogIndex, SnapshotMeta } from '../types.ts';
import type { MemoryDisk } from './memory-disk.ts';
import type { Scheduler } from './sim-clock.ts';

export interface MemoryLogOptions {
  /** How long the next sync, read or compaction takes. */
  delayMs(): number;
}

export type LogOperation = 'write' | 'read' | 'compact' | 'close';

/** One thing that reaches the disk on its own: a hard state or an entry. */
type Piece = { readonly hardState: HardState } | { readonly entry: Entry };

interface Sync {
  readonly pieces: Piece[];
  readonly dones: Done[];
}

/**
 * A log in memory that behaves like one on disk: a write is durable only after its sync, writes that arrive during a sync
 * share the next one, a hard state is synced before the entries that come with it, and a crash keeps a prefix of what was
 * being synced. Each step of a sync is an event of its own, so that a test can crash between any two.
 */
export class MemoryLog implements LogStore {
  readonly start: LogStart;
  readonly #disk: MemoryDisk;
  readonly #scheduler: Scheduler;
  readonly #delayMs: () => number;
  #waiting: Sync[] = [];
  #syncing: Sync | undefined;
  #commitNoted = 0;
  readonly #faults = new Map<LogOperation, { readonly error: Error; readonly landed: number }>();
  #ended: Error | undefined;
  /** Reads and compactions under way. */
  #operations = 0;
  /** Writes and reads asked for, and syncs finished: fewer syncs than writes are group commit. */
  readonly counts = { syncs: 0, writes: 0, reads: 0 };

  constructor(disk: MemoryDisk, scheduler: Scheduler, { delayMs = () => 1 }: Partial<MemoryLogOptions>) {
    this.start = disk.start();
    this.#disk = disk;
    this.#scheduler = scheduler;
    this.#delayMs = delayMs;
  }

  /** The next such operation fails, and with it the log. Of a failing write the first `landed` pieces are on disk all the same. */
  failNext(operation: LogOperation, error: Error, { landed = 0 }: { readonly landed?: number } = {}): void {
    this.#faults.set(operation, { error, landed });
  }

  /** The process dies: the first `landed` pieces of what was being synced are on disk, the rest never was. */
  crash({ landed }: { readonly landed: number }): void {
    for (const piece of this.#syncing?.pieces.slice(0, landed) ?? []) this.#store(piece);
    this.#ended = new Error('crashed');
  }

  write({ hardState, entries }: LogWrite, done: Done): void {
    if (this.#refuses(done)) return;
    this.counts.writes += 1;
    if (hardState !== undefined) this.#waiting.push({ pieces: [{ hardState }], dones: entries.length > 0 ? [] : [done] });
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
    this.#operate('read', (error) => {
      if (error !== undefined) return done(error, []);
      const entries: Entry[] = [];
      let bytes = 0;
      for (let index = range.lo; index <= range.hi; index++) {
        const entry = this.#disk.entry(index);
        if (entry === undefined) return done(new Error(`entry ${index} is not in the log`), []);
        bytes += entry.data.length;
        if (bytes > range.maxBytes && entries.length > 0) break;
        entries.push(entry);
      }
      return done(undefined, entries);
    });
  }

  compact(base: SnapshotMeta, done: Done): void {
    this.#operate('compact', (error) => {
      if (error === undefined) this.#disk.compact(base);
      done(error);
    });
  }

  /** Only a log at rest can be closed. */
  close(done: Done): void {
    if (this.#refuses(done)) return;
    const busy =
      this.#syncing !== undefined || this.#operations > 0 ? new Error('closed while an operation is under way') : undefined;
    const error = this.#faults.get('close')?.error ?? busy;
    this.#ended = error ?? new Error('the log is closed');
    this.#scheduler.afterTurn(() => done(error));
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

  /** A hard state goes alone; all entries waiting before the next hard state go together. */
  #nextSync(): Sync | undefined {
    const isHardState = ({ pieces: [first] }: Sync): boolean => first !== undefined && 'hardState' in first;
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
    if (fault === undefined) this.counts.syncs += 1;
    this.#scheduler.after(0, () => {
      for (const done of [...dones, ...failed]) done(fault?.error);
    });
    this.#sync();
  }

  #store(piece: Piece): void {
    if ('entry' in piece) this.#disk.store(piece.entry);
    const hardState = 'hardState' in piece ? piece.hardState : this.#disk.hardState;
    this.#disk.hardState = { ...hardState, commit: Math.max(hardState.commit, this.#commitNoted, this.#disk.hardState.commit) };
  }
}
