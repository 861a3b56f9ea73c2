import { invariant } from '../invariant.ts';
import type { LogView } from '../log/log-view.ts';
import type { Entry, LogIndex, Term } from '../types.ts';

export type AppendVerdict =
  /** The message is about entries that are committed here: nothing to do, and all up to there is held. */
  | { readonly kind: 'committed' }
  | { readonly kind: 'mismatch'; readonly hintIndex: LogIndex; readonly hintTerm: Term }
  /** `news` are the entries that the log does not hold; the first takes the place of all from its index on. */
  | { readonly kind: 'meets'; readonly match: LogIndex; readonly news: readonly Entry[] };

/**
 * What a follower makes of an Append (Raft §5.3). What it acknowledges is what the message shows, never its own last entry,
 * which may be of another leader. Entries that it holds already stay, also beyond the message: a delayed, shorter message
 * says nothing against them.
 */
export function receiveAppend(
  log: LogView,
  commitIndex: LogIndex,
  { prevIndex, prevTerm, entries }: { readonly prevIndex: LogIndex; readonly prevTerm: Term; readonly entries: readonly Entry[] },
): AppendVerdict {
  const committed = [{ index: prevIndex, term: prevTerm }, ...entries.slice(0, Math.max(0, commitIndex - prevIndex))];
  for (const { index, term } of committed) {
    const agrees = index > commitIndex || index < log.baseIndex || log.termAt(index) === term;
    invariant(agrees, 'a committed entry is never superseded', { index, term, commitIndex });
  }
  if (prevIndex < commitIndex) return { kind: 'committed' };
  if (!log.holds({ index: prevIndex, term: prevTerm })) {
    // The leader's term at our last entry of at most its own `prevTerm` may fit; later ones cannot (one probe a term).
    const hintIndex = Math.max(commitIndex, log.lastAtMost({ index: prevIndex, term: prevTerm }));
    return { kind: 'mismatch', hintIndex, hintTerm: log.termAt(hintIndex) };
  }
  const known = entries.findIndex((entry) => !log.holds(entry));
  const news = known < 0 ? [] : entries.slice(known);
  return { kind: 'meets', match: prevIndex + entries.length, news };
}
