import type { Entry, LogIndex, Term } from '@transitd/raft-core';

/** Where one entry of the log in force lies. */
export interface StoredEntry {
  readonly term: Term;
  readonly index: LogIndex;
  /** Number of its segment, place in it, and length of its record. */
  readonly segment: number;
  readonly offset: number;
  readonly bytes: number;
  readonly entry?: Entry;
}

/** The entries in force: what is left of the records when each has superseded those of its index and above. */
export class LogView {
  /** Ascending without gaps; begins behind `#base`. */
  #stored: StoredEntry[] = [];
  #base: { readonly index: LogIndex; readonly term: Term };
  readonly #cacheBytes: number;
  #cachedBytes = 0;
  /** Entries from this index on are held in memory. */
  #cachedFrom: LogIndex;

  constructor(base: { index: LogIndex; term: Term }, cacheBytes: number) {
    this.#base = base;
    this.#cachedFrom = base.index + 1;
    this.#cacheBytes = cacheBytes;
  }

  /** One above the last index while there is none. */
  get firstIndex(): LogIndex {
    return this.#base.index + 1;
  }

  get lastIndex(): LogIndex {
    return this.#base.index + this.#stored.length;
  }

  /** Of all records in force. */
  get bytes(): number {
    return this.#stored.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Undefined outside base..last. */
  termAt(index: LogIndex): Term | undefined {
    return index === this.#base.index ? this.#base.term : this.at(index)?.term;
  }

  at(index: LogIndex): StoredEntry | undefined {
    return this.#stored[index - this.#base.index - 1];
  }

  /** Takes the place of everything from its index on, which lies between the first entry and the one behind the last. */
  append(stored: StoredEntry): void {
    this.#truncate(stored.index - 1);
    this.#stored.push(stored);
    if (stored.entry === undefined) this.#forgetUpTo(stored.index);
    else this.#cachedBytes += stored.bytes;
    while (this.#cachedBytes > this.#cacheBytes) this.#forgetUpTo(this.#cachedFrom);
  }

  /** Moves the beginning up; everything up to `base.index` is forgotten. */
  dropUpTo(base: { readonly index: LogIndex; readonly term: Term }): void {
    this.#forgetUpTo(base.index);
    this.#stored.splice(0, base.index - this.#base.index);
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
    return this.#stored
      .filter(({ term }, i) => i === 0 || term !== this.#stored[i - 1]?.term)
      .map(({ term, index }) => ({ term, firstIndex: index }));
  }

  #truncate(last: LogIndex): void {
    for (let dropped = this.lastIndex; dropped > last; dropped--) {
      const stored = this.#stored.pop();
      if (stored?.entry !== undefined) this.#cachedBytes -= stored.bytes;
    }
    this.#cachedFrom = Math.min(this.#cachedFrom, last + 1);
  }

  #forgetUpTo(index: LogIndex): void {
    for (; this.#cachedFrom <= index; this.#cachedFrom++) {
      const stored = this.at(this.#cachedFrom);
      if (stored?.entry === undefined) continue;
      const { entry: _, ...place } = stored;
      this.#cachedBytes -= stored.bytes;
      this.#stored[this.#cachedFrom - this.#base.index - 1] = place;
    }
  }
}
