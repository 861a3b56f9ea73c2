import type { LogIndex, Term } from '@transitd/raft-core';
import type { Place } from './recent-records.ts';

/** One current entry of the log and the place of its record. */
export interface StoredEntry extends Place {
  readonly term: Term;
  readonly index: LogIndex;
}

/** How many numbers one entry takes: term, segment, offset, bytes. */
const width = 4;

/**
 * The current entries: the records that no later record supersedes. A record supersedes the earlier ones at its index and above. The
 * entries are kept as plain numbers in one array, because a log of tens of thousands of entries stays in memory while the node runs.
 */
export class LogView {
  /** The entries after `#base`, ascending without gaps. */
  readonly #numbers: number[] = [];
  #base: { readonly index: LogIndex; readonly term: Term };

  constructor(base: { index: LogIndex; term: Term }) {
    this.#base = base;
  }

  /** The first entry's index; `lastIndex + 1` for an empty log. */
  get firstIndex(): LogIndex {
    return this.#base.index + 1;
  }

  get lastIndex(): LogIndex {
    return this.#base.index + this.#numbers.length / width;
  }

  /** The size of all current records. */
  get bytes(): number {
    let bytes = 0;
    for (let at = width - 1; at < this.#numbers.length; at += width) bytes += this.#numbers[at] ?? 0;
    return bytes;
  }

  /** Returns the term of the entry, or undefined outside base..last. */
  termAt(index: LogIndex): Term | undefined {
    return index === this.#base.index ? this.#base.term : this.#numbers[this.#position(index)];
  }

  at(index: LogIndex): StoredEntry | undefined {
    if (index < this.firstIndex || index > this.lastIndex) return undefined;
    const from = this.#position(index);
    const [term = 0, segment = 0, offset = 0, bytes = 0] = this.#numbers.slice(from, from + width);
    return { term, index, segment, offset, bytes };
  }

  /** Adds an entry and drops all entries from its index on. The index is between `firstIndex` and `lastIndex + 1`. */
  append({ index, term, segment, offset, bytes }: StoredEntry): void {
    if (index <= this.lastIndex) this.#numbers.length = this.#position(index);
    this.#numbers.push(term, segment, offset, bytes);
  }

  /** Drops the entries up to and including `base.index`. */
  dropUpTo(base: { readonly index: LogIndex; readonly term: Term }): void {
    this.#numbers.splice(0, width * (base.index - this.#base.index));
    this.#base = base;
  }

  /** Returns entries lo..hi, up to `maxBytes` of records but at least one entry. @throws RangeError if an entry is missing */
  range({ lo, hi, maxBytes }: { lo: LogIndex; hi: LogIndex; maxBytes: number }): StoredEntry[] {
    if (lo > hi || lo <= this.#base.index || hi > this.lastIndex)
      throw new RangeError(
        `entries ${lo} to ${hi} are not all in the log, which holds ${this.#base.index + 1} to ${this.lastIndex}`,
      );
    const found: StoredEntry[] = [];
    let bytes = 0;
    for (let at = this.at(lo); at !== undefined && at.index <= hi; at = this.at(at.index + 1)) {
      bytes += at.bytes;
      if (bytes > maxBytes && found.length > 0) break;
      found.push(at);
    }
    return found;
  }

  /** Returns the terms in the log, run-length encoded: each with its first index. */
  terms(): { readonly term: Term; readonly firstIndex: LogIndex }[] {
    const runs: { term: Term; firstIndex: LogIndex }[] = [];
    for (let index = this.firstIndex; index <= this.lastIndex; index++) {
      const term = this.termAt(index);
      if (term !== undefined && term !== runs.at(-1)?.term) runs.push({ term, firstIndex: index });
    }
    return runs;
  }

  /** Returns where the entry's numbers begin in `#numbers`. */
  #position(index: LogIndex): number {
    return width * (index - this.firstIndex);
  }
}
