import type { LogIndex, Term } from '@transitd/raft-core';
import type { Place } from './recent-records.ts';

/** One entry of the log in force, and the place of its record. */
export interface StoredEntry extends Place {
  readonly term: Term;
  readonly index: LogIndex;
}

/** Numbers of one entry, in this order: term, segment, offset, bytes. */
const width = 4;

/**
 * The entries in force: what is left of the records when each has superseded those of its index and above. Numbers end to end, for a
 * log of tens of thousands of entries is kept here for as long as the node runs.
 */
export class LogView {
  /** Of the entries behind `#base`, ascending without gaps. */
  readonly #numbers: number[] = [];
  #base: { readonly index: LogIndex; readonly term: Term };

  constructor(base: { index: LogIndex; term: Term }) {
    this.#base = base;
  }

  /** One above the last index while there is none. */
  get firstIndex(): LogIndex {
    return this.#base.index + 1;
  }

  get lastIndex(): LogIndex {
    return this.#base.index + this.#numbers.length / width;
  }

  /** Of all records in force. */
  get bytes(): number {
    let bytes = 0;
    for (let at = width - 1; at < this.#numbers.length; at += width) bytes += this.#numbers[at] ?? 0;
    return bytes;
  }

  /** Undefined outside base..last. */
  termAt(index: LogIndex): Term | undefined {
    return index === this.#base.index ? this.#base.term : this.#numbers[this.#position(index)];
  }

  at(index: LogIndex): StoredEntry | undefined {
    if (index < this.firstIndex || index > this.lastIndex) return undefined;
    const from = this.#position(index);
    const [term = 0, segment = 0, offset = 0, bytes = 0] = this.#numbers.slice(from, from + width);
    return { term, index, segment, offset, bytes };
  }

  /** Takes the place of everything from its index on, which lies between the first entry and the one behind the last. */
  append({ index, term, segment, offset, bytes }: StoredEntry): void {
    if (index <= this.lastIndex) this.#numbers.length = this.#position(index);
    this.#numbers.push(term, segment, offset, bytes);
  }

  /** Moves the beginning up; everything up to `base.index` is forgotten. */
  dropUpTo(base: { readonly index: LogIndex; readonly term: Term }): void {
    this.#numbers.splice(0, width * (base.index - this.#base.index));
    this.#base = base;
  }

  /** Entries lo..hi, cut after `maxBytes` of records but never to none. @throws RangeError if one is not there */
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

  /** Run-length: where each term begins. */
  terms(): { readonly term: Term; readonly firstIndex: LogIndex }[] {
    const runs: { term: Term; firstIndex: LogIndex }[] = [];
    for (let index = this.firstIndex; index <= this.lastIndex; index++) {
      const term = this.termAt(index);
      if (term !== undefined && term !== runs.at(-1)?.term) runs.push({ term, firstIndex: index });
    }
    return runs;
  }

  /** Where its numbers begin. */
  #position(index: LogIndex): number {
    return width * (index - this.firstIndex);
  }
}
