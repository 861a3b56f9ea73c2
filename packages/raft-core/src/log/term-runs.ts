import { invariant } from '../invariant.ts';
import type { LogIndex, Term } from '../types.ts';
import { LogDamage } from './log-damage.ts';

/** Entries from `firstIndex` on have this term, up to the next run. */
export interface TermRun {
  readonly term: Term;
  readonly firstIndex: LogIndex;
}

/**
 * The term of every entry, as one pair per term instead of one per entry. There are few elections and many entries, so the terms of the
 * whole log stay in memory and no term is ever read from disk.
 */
export class TermRuns {
  /** Ascending; the first run begins at the base, whose entry is compacted but whose term is known. */
  #runs: TermRun[];

  /** @throws LogDamage if terms fall along the log or its first entry is missing */
  constructor(base: { readonly index: LogIndex; readonly term: Term }, stored: readonly TermRun[], lastIndex: LogIndex) {
    this.#runs = [{ term: base.term, firstIndex: base.index }];
    for (const [position, run] of stored.entries()) {
      const before = this.#last();
      const fits =
        position === 0
          ? run.firstIndex === base.index + 1 && run.term >= before.term
          : run.firstIndex > before.firstIndex && run.term > before.term;
      if (!fits || run.firstIndex > lastIndex) throw new LogDamage(`The log's terms do not ascend at entry ${run.firstIndex}.`);
      if (run.term > before.term) this.#runs.push(run);
    }
    if (lastIndex < base.index || (lastIndex > base.index && stored.length === 0)) {
      throw new LogDamage(`The log ends at entry ${lastIndex} but begins after entry ${base.index}.`);
    }
  }

  get lastTerm(): Term {
    return this.#last().term;
  }

  /** Returns the term of an entry between the base and the last one. */
  termAt(index: LogIndex): Term {
    let low = 0;
    let high = this.#runs.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.#at(middle).firstIndex <= index) low = middle;
      else high = middle - 1;
    }
    const run = this.#at(low);
    invariant(run.firstIndex <= index, 'a term is requested only for an index at or after the base', {
      index,
      base: run.firstIndex,
    });
    return run.term;
  }

  /** Returns the last entry at or below `index` whose term is at most `term`, or the index before the base if no entry fits. */
  lastAtMost({ index, term }: { readonly index: LogIndex; readonly term: Term }): LogIndex {
    const position = this.#runs.findLastIndex((run) => run.term <= term && run.firstIndex <= index);
    if (position < 0) return this.#at(0).firstIndex - 1;
    return Math.min(index, (this.#runs[position + 1]?.firstIndex ?? Number.POSITIVE_INFINITY) - 1);
  }

  /** Drops the entries from `index` on, which are superseded. The base stays. */
  truncate(index: LogIndex): void {
    invariant(index > this.#at(0).firstIndex, 'the base is never superseded', { index });
    while (this.#last().firstIndex >= index) this.#runs.pop();
  }

  append({ term, index }: { readonly term: Term; readonly index: LogIndex }): void {
    invariant(term >= this.lastTerm, 'log terms never fall', { term, lastTerm: this.lastTerm, index });
    if (term > this.lastTerm) this.#runs.push({ term, firstIndex: index });
  }

  compact(base: { readonly index: LogIndex; readonly term: Term }): void {
    const later = this.#runs.filter((run) => run.firstIndex > base.index);
    this.#runs = [{ term: base.term, firstIndex: base.index }, ...later];
  }

  #last(): TermRun {
    return this.#at(this.#runs.length - 1);
  }

  #at(position: number): TermRun {
    const run = this.#runs[position];
    invariant(run !== undefined, 'the log has a term at its base', { position });
    return run;
  }
}
