import { invariant } from '../invariant.ts';
import type { Clock, StateMachine } from '../ports.ts';
import type { Entry, LogIndex } from '../types.ts';
import type { DriverLimits } from './limits.ts';

type ApplierLimits = Pick<DriverLimits, 'flushIntervalMs' | 'unflushedBytesMax'>;

/** Approximate memory of one applied entry, in addition to its payload, in bytes. */
const ENTRY_OVERHEAD_BYTES = 128;

/**
 * Applies committed entries to the state machine, a few milliseconds at a time, and flushes them later. Nothing waits for a flush, except
 * applying itself when too many bytes are unflushed.
 */
export class Applier<Result> {
  readonly #stateMachine: StateMachine<Result>;
  readonly #limits: ApplierLimits;
  #queue: readonly Entry[] = [];
  /** Position of the next entry to apply in `#queue`. */
  #next = 0;
  #applied: LogIndex;
  #flushed: LogIndex;
  #unflushedBytes = 0;
  #flushing = false;
  /** When the newest flush began. */
  #beganMs = Number.NEGATIVE_INFINITY;

  constructor(stateMachine: StateMachine<Result>, limits: ApplierLimits) {
    this.#stateMachine = stateMachine;
    this.#limits = limits;
    this.#applied = stateMachine.flushedAtOpen;
    this.#flushed = stateMachine.flushedAtOpen;
  }

  get appliedIndex(): LogIndex {
    return this.#applied;
  }
  get flushedIndex(): LogIndex {
    return this.#flushed;
  }
  get isFlushing(): boolean {
    return this.#flushing;
  }
  /** Whether every committed entry handed over is applied. */
  get isIdle(): boolean {
    return this.#next === this.#queue.length;
  }
  /**
   * Whether so few bytes are unflushed that entries may be applied ahead of the stable log. No flush starts while the state is ahead, so a
   * log that is always slow must be allowed to catch up now and then.
   */
  get hasRoomAhead(): boolean {
    return this.#unflushedBytes < this.#limits.unflushedBytesMax / 4;
  }
  /**
   * Returns for how long the state's disk has held up applying, in ms: the time since the flush under way began, once the limit of
   * unflushed bytes is reached; 0 before that. A compaction of the database slows single flushes, but they end.
   */
  stalledMs(nowMs: number): number {
    return this.#flushing && this.#unflushedBytes >= this.#limits.unflushedBytesMax ? nowMs - this.#beganMs : 0;
  }
  /**
   * Returns whether the time for another flush has come. An acknowledged entry is in the log, so a later flush only makes a restart apply
   * more entries again.
   */
  isFlushDue(nowMs: number): boolean {
    return nowMs >= this.#beganMs + this.#limits.flushIntervalMs || !this.hasRoomAhead;
  }
  get canApply(): boolean {
    return !this.isIdle && this.#unflushedBytes < this.#limits.unflushedBytesMax;
  }

  add(entries: readonly Entry[]): void {
    if (entries.length === 0) return;
    this.#queue = this.isIdle ? entries : [...this.#queue.slice(this.#next), ...entries];
    this.#next = 0;
  }

  /**
   * Applies entries for about `chunkMs`, at least one, and publishes them together; then calls `applied` for each. If an entry fails, that
   * still happens to those before it.
   */
  applyChunk(clock: Clock, chunkMs: number, applied: (entry: Entry, result: Result) => void): void {
    if (!this.canApply) return;
    const endMs = clock.now() + chunkMs;
    const results: (readonly [Entry, Result])[] = [];
    try {
      do results.push(this.#applyNext());
      while (this.canApply && clock.now() < endMs);
    } finally {
      this.#stateMachine.publish();
      for (const [entry, result] of results) applied(entry, result);
    }
    if (this.isIdle) {
      this.#queue = [];
      this.#next = 0;
    }
  }

  #applyNext(): readonly [Entry, Result] {
    const entry = this.#queue[this.#next];
    invariant(entry?.index === this.#applied + 1, 'entries are applied in order, each once', {
      applied: this.#applied,
      next: entry?.index,
    });
    const result = this.#stateMachine.apply(entry);
    this.#next += 1;
    this.#applied = entry.index;
    this.#unflushedBytes += entry.data.length + ENTRY_OVERHEAD_BYTES;
    return [entry, result];
  }

  /** Continues after a durable snapshot that contains everything up to `index`; no flush was under way. */
  restored(index: LogIndex): void {
    invariant(!this.#flushing && index > this.#applied, 'a snapshot is newer than the state', { applied: this.#applied, index });
    this.#queue = [];
    this.#next = 0;
    this.#applied = index;
    this.#flushed = index;
    this.#unflushedBytes = 0;
  }

  /**
   * Starts a flush if there is anything to flush and none is under way. A flush writes everything applied, so it waits until the log on
   * disk, which ends at `stableIndex`, has all of that too. The caller calls `note` unless there was an error.
   */
  flush(
    { stableIndex, clock }: { readonly stableIndex: LogIndex; readonly clock: Clock },
    finished: (error: Error | undefined, note: () => void) => void,
  ): void {
    if (this.#flushing || this.#flushed === this.#applied || this.#applied > stableIndex) return;
    this.#flushing = true;
    this.#beganMs = clock.now();
    const started = { index: this.#applied, bytes: this.#unflushedBytes };
    this.#stateMachine.flush((error, flushed) => finished(error, () => this.#noteFlush(started, flushed)));
  }

  #noteFlush(started: { readonly index: LogIndex; readonly bytes: number }, flushed: LogIndex): void {
    const applied = this.#applied;
    invariant(flushed >= started.index && flushed <= applied, 'a flush covers all that was applied before it began', {
      flushed,
      from: started.index,
      applied,
    });
    this.#flushing = false;
    this.#flushed = flushed;
    this.#unflushedBytes = flushed === applied ? 0 : this.#unflushedBytes - started.bytes;
  }
}
