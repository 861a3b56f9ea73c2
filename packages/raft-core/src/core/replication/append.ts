import { HistoryConflict } from '../../log/history-conflict.ts';
import type { LogView } from '../../log/log-view.ts';
import type { Entry, LogIndex, Term } from '../../types.ts';

export type AppendVerdict =
  /** The entries are already committed on this node, whose log holds everything up to its commit index. Nothing is left to do. */
  | { readonly kind: 'committed' }
  | { readonly kind: 'mismatch'; readonly hintIndex: LogIndex; readonly hintTerm: Term }
  /** `missing` are the entries that the log lacks; the first one supersedes everything from its index on. */
  | { readonly kind: 'meets'; readonly match: LogIndex; readonly missing: readonly Entry[] };

/**
 * Judges an Append as a follower (Raft §5.3). The follower acknowledges the last entry that the message shows, never its own last entry,
 * which may come from another leader. Entries that match stay, and so do entries after the message's last one: a delayed, shorter message
 * does not contradict them.
 * @throws HistoryConflict at a committed entry, which is never superseded
 */
export function receiveAppend(
  log: LogView,
  commitIndex: LogIndex,
  { prevIndex, prevTerm, entries }: { readonly prevIndex: LogIndex; readonly prevTerm: Term; readonly entries: readonly Entry[] },
): AppendVerdict {
  const committed = [{ index: prevIndex, term: prevTerm }, ...entries.slice(0, Math.max(0, commitIndex - prevIndex))];
  for (const { index, term } of committed) {
    const agrees = index > commitIndex || index < log.baseIndex || log.termAt(index) === term;
    if (!agrees)
      throw new HistoryConflict(
        `the leader has an entry ${index} of term ${term}, and another one is committed here, up to ${commitIndex}`,
      );
  }
  if (prevIndex < commitIndex) return { kind: 'committed' };
  if (!log.holds({ index: prevIndex, term: prevTerm })) {
    // Entries of later terms than the leader's `prevTerm` cannot match, so the hint is the last entry before them. The leader then needs at
    // most one probe per term.
    const hintIndex = Math.max(commitIndex, log.lastAtMost({ index: prevIndex, term: prevTerm }));
    return { kind: 'mismatch', hintIndex, hintTerm: log.termAt(hintIndex) };
  }
  const known = entries.findIndex((entry) => !log.holds(entry));
  const missing = known < 0 ? [] : entries.slice(known);
  return { kind: 'meets', match: prevIndex + entries.length, missing };
}
