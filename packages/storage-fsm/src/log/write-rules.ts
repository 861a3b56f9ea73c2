import type { HardState, LogIndex, LogWrite, Term } from '@transitd/raft-core';

/** The log and hard state before a write. */
export interface WriteContext {
  readonly lastIndex: LogIndex;
  readonly hardState: Pick<HardState, 'term' | 'vote'>;
  /** Returns undefined where there is no entry; the base counts as an entry. */
  readonly termAt: (index: LogIndex) => Term | undefined;
}

/** A write and the highest index that was known to be committed when it was requested. */
export interface CheckedWrite {
  readonly write: LogWrite;
  readonly committedBefore: LogIndex;
}

/**
 * Checks the log's contract before entries become durable: only a bug breaks it, and storing such a write would spread the damage.
 * @throws RangeError that names the rule
 */
export function checkWrites(writes: readonly CheckedWrite[], { lastIndex, hardState, termAt }: WriteContext): void {
  const written = new Map<LogIndex, Term>();
  let last = lastIndex;
  let { term, vote } = hardState;
  const rule = (holds: boolean, text: string) => {
    if (!holds) throw new RangeError(`${text} (last index ${last}, term ${term}, vote ${vote})`);
  };
  for (const { write, committedBefore } of writes) {
    const next = write.hardState;
    if (next !== undefined) {
      rule(next.term >= term, `the term never decreases, but ${next.term} was given`);
      rule(next.term > term || vote === 0 || next.vote === vote, `a vote is given once in a term, but ${next.vote} was given`);
      ({ term, vote } = next);
    }
    const first = write.entries[0]?.index ?? last + 1;
    rule(first > committedBefore, `a committed entry is never superseded, but entry ${first} was given`);
    rule(first <= last + 1, `entries follow each other, but entry ${first} was given`);
    write.entries.forEach((entry, i) => {
      const { index } = entry;
      const termBefore = written.get(index - 1) ?? termAt(index - 1);
      rule(index === first + i, `entries follow each other, but entry ${index} was given`);
      rule(
        termBefore !== undefined && entry.term >= termBefore,
        `terms never decrease along the log, but entry ${index} has ${entry.term}`,
      );
      rule(entry.term <= term, `a term is durable before its entries, but entry ${index} has ${entry.term}`);
      written.set(index, entry.term);
      last = index;
    });
  }
}
