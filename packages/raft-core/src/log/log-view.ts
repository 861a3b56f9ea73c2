import { invariant } from '../invariant.ts';
import type { Entry, EntryType, LogIndex, Term } from '../types.ts';
import { type TermRun, TermRuns } from './term-runs.ts';

/** The position of an entry: index and term identify it (Raft §5.3, log matching). */
export interface Position {
  readonly index: LogIndex;
  readonly term: Term;
}

/**
 * The core's view of the whole log: terms only for the stored part, whole entries for the newest part. Entries stay in memory until they
 * are stable (on disk and acknowledged) and applied; older ones are read back from disk.
 *
 * base | ... on disk only ... | memory: stable | written, not acknowledged | unwritten | lastIndex
 */
export class LogView {
  #terms: TermRuns;
  #base: Position;
  /** The newest entries, contiguous, starting at `#memoryFirst`. */
  readonly #memory: Entry[] = [];
  #memoryFirst: LogIndex;
  #memoryBytes = 0;
  #stable: LogIndex;
  /** The last entry handed out to be written. */
  #handed: LogIndex;
  /** Writes not yet acknowledged, oldest first: the last entry that each makes stable. */
  #writes: { readonly seq: number; readonly last: LogIndex }[] = [];

  constructor(stored: { readonly base: Position; readonly lastIndex: LogIndex; readonly terms: readonly TermRun[] }) {
    this.#base = { index: stored.base.index, term: stored.base.term };
    this.#terms = new TermRuns(this.#base, stored.terms, stored.lastIndex);
    this.#memoryFirst = stored.lastIndex + 1;
    this.#stable = stored.lastIndex;
    this.#handed = stored.lastIndex;
  }

  get baseIndex(): LogIndex {
    return this.#base.index;
  }
  get lastIndex(): LogIndex {
    return this.#memoryFirst + this.#memory.length - 1;
  }
  get lastTerm(): Term {
    return this.#terms.lastTerm;
  }
  get stableIndex(): LogIndex {
    return this.#stable;
  }
  /** The first entry that is in memory. */
  get memoryFirst(): LogIndex {
    return this.#memoryFirst;
  }
  /** Payload bytes of the entries in memory. */
  get memoryBytes(): number {
    return this.#memoryBytes;
  }
  get hasUnwritten(): boolean {
    return this.#handed < this.lastIndex;
  }

  termAt(index: LogIndex): Term {
    invariant(index <= this.lastIndex, 'a term is requested only up to the last entry', { index, lastIndex: this.lastIndex });
    return this.#terms.termAt(index);
  }

  /** Returns whether the log holds this entry; the base counts. */
  holds({ index, term }: Position): boolean {
    return index >= this.#base.index && index <= this.lastIndex && this.#terms.termAt(index) === term;
  }

  /** Returns the last entry at or below `index` whose term is at most `term`, using terms only (fast backtracking, Raft §5.3). */
  lastAtMost({ index, term }: Position): LogIndex {
    return this.#terms.lastAtMost({ index: Math.min(index, this.lastIndex), term });
  }

  append({ term, type, data }: { readonly term: Term; readonly type: EntryType; readonly data: Uint8Array }): Entry {
    const entry: Entry = { term, index: this.lastIndex + 1, type, data };
    this.push(entry);
    return entry;
  }

  /** Appends the next entry as its leader made it. */
  push(entry: Entry): void {
    const { index } = entry;
    invariant(index === this.lastIndex + 1, 'entries follow each other', { index, lastIndex: this.lastIndex });
    invariant(Number.isSafeInteger(index), 'an index is a safe integer', { index });
    this.#terms.append(entry);
    this.#memory.push(entry);
    this.#memoryBytes += entry.data.length;
  }

  /**
   * Drops the entries from `index` on, which conflict with the leader's. They stay on disk until the leader's entries supersede them. The
   * acknowledgement of a write under way must not count for an index that has another entry by then. Returns whether a write under way is
   * affected.
   */
  truncate(index: LogIndex): boolean {
    invariant(index > this.#base.index && index <= this.lastIndex, 'a truncation begins at an entry of the log', {
      index,
      base: this.#base.index,
      lastIndex: this.lastIndex,
    });
    const last = index - 1;
    this.#terms.truncate(index);
    this.#memoryBytes -= bytesOf(this.#memory.splice(Math.max(0, index - this.#memoryFirst)));
    this.#memoryFirst = Math.min(this.#memoryFirst, index);
    this.#handed = Math.min(this.#handed, last);
    this.#stable = Math.min(this.#stable, last);
    const clipped = this.#writes.some((write) => write.last > last);
    this.#writes = this.#writes.map((write) => ({ seq: write.seq, last: Math.min(write.last, last) }));
    return clipped;
  }

  /** Replaces the whole log with a snapshot; the log continues after it. */
  install(base: Position): void {
    invariant(base.index > this.#base.index, 'a snapshot raises the base', { from: this.#base.index, to: base.index });
    this.#base = { index: base.index, term: base.term };
    this.#terms = new TermRuns(this.#base, [], base.index);
    this.#memory.length = 0;
    this.#memoryBytes = 0;
    this.#memoryFirst = base.index + 1;
    this.#stable = base.index;
    this.#handed = base.index;
    this.#writes = [];
  }

  /** Returns the entries not yet handed out to be written; `seq` identifies the write from now on. */
  takeUnwritten(seq: number): readonly Entry[] {
    if (!this.hasUnwritten) return [];
    const entries = this.#memory.slice(this.#handed + 1 - this.#memoryFirst);
    this.#handed = this.lastIndex;
    this.#writes.push({ seq, last: this.#handed });
    return entries;
  }

  /** Notes that the write `seq` and all earlier ones are durable. */
  persisted(seq: number): void {
    for (let write = this.#writes[0]; write !== undefined && write.seq <= seq; write = this.#writes[0]) {
      this.#stable = Math.max(this.#stable, write.last);
      this.#writes.shift();
    }
  }

  /** Returns the entries `lo..hi` that are in memory, cut after `maxBytes` of payload, but at least one. */
  inMemory({ lo, hi, maxBytes }: { readonly lo: LogIndex; readonly hi: LogIndex; readonly maxBytes: number }): readonly Entry[] {
    invariant(lo >= this.#memoryFirst && hi <= this.lastIndex, 'the requested entries are in memory', { lo, hi });
    const from = lo - this.#memoryFirst;
    let bytes = 0;
    let end = from;
    for (; end <= hi - this.#memoryFirst; end++) {
      bytes += this.#memory[end]?.data.length ?? 0;
      if (bytes > maxBytes && end > from) break;
    }
    return this.#memory.slice(from, end);
  }

  /** Returns the payload bytes of those entries of `lo..hi` that are in memory. */
  bytesInMemory({ lo, hi }: { readonly lo: LogIndex; readonly hi: LogIndex }): number {
    let bytes = 0;
    for (let index = Math.max(lo, this.#memoryFirst); index <= hi; index++) {
      bytes += this.#memory[index - this.#memoryFirst]?.data.length ?? 0;
    }
    return bytes;
  }

  /** Releases entries that are stable and applied. */
  release(applied: LogIndex): void {
    const count = Math.min(this.#stable, applied) + 1 - this.#memoryFirst;
    if (count <= 0) return;
    this.#memoryBytes -= bytesOf(this.#memory.splice(0, count));
    this.#memoryFirst += count;
  }

  /** Notes that the disk no longer keeps the entries up to and including `base.index`. */
  compacted(base: Position): void {
    invariant(base.index >= this.#base.index && base.index < this.#memoryFirst, 'compaction ends below the entries in memory', {
      from: this.#base.index,
      to: base.index,
      memoryFirst: this.#memoryFirst,
    });
    this.#base = { index: base.index, term: base.term };
    this.#terms.compact(this.#base);
  }

  /** Checks all rules, reading every entry in memory; for tests and soak runs. */
  checkInvariants(): void {
    const { lastIndex } = this;
    invariant(
      this.#base.index < this.#memoryFirst && this.#stable <= this.#handed && this.#handed <= lastIndex,
      'base < first in memory, and stable <= handed out <= last',
      { base: this.#base.index, memoryFirst: this.#memoryFirst, stable: this.#stable, handed: this.#handed, lastIndex },
    );
    invariant(this.#stable >= this.#memoryFirst - 1, 'only stable entries leave memory', { stable: this.#stable });
    invariant(this.#memoryBytes === bytesOf(this.#memory), 'the bytes in memory are counted', { bytes: this.#memoryBytes });
    for (const [position, entry] of this.#memory.entries()) {
      const { index, term } = entry;
      invariant(index === this.#memoryFirst + position, 'indexes are contiguous', { index, position });
      invariant(term === this.termAt(index), 'the log has the term of each entry in memory', { index, term });
    }
    for (const [position, write] of this.#writes.entries()) {
      const before = this.#writes[position - 1] ?? { seq: 0, last: this.#stable };
      invariant(write.last <= this.#handed, 'no write reaches beyond the entries handed out', { ...write });
      invariant(write.seq > before.seq && write.last >= before.last, 'writes in flight are in ascending order', { ...write });
    }
  }
}

const bytesOf = (entries: readonly Entry[]): number => entries.reduce((sum, { data }) => sum + data.length, 0);
