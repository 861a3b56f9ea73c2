import { LogDamage } from '../../log/log-damage.ts';
import type { LogStart } from '../../ports.ts';
import type { LogIndex } from '../../types.ts';

/**
 * Returns how far the log is known to be committed at a start. The stored commit index is a hint and may be old, but applied and compacted
 * entries are certainly committed.
 * @throws LogDamage if committed or applied entries are missing
 */
export function committedAtStart({ hardState, base, lastIndex, terms }: LogStart, applied: LogIndex): LogIndex {
  const commit = Math.max(hardState.commit, applied, base.index);
  if (applied < base.index) {
    throw new LogDamage(`The state machine ends at entry ${applied} but the log begins after entry ${base.index}.`);
  }
  if (commit > lastIndex) {
    throw new LogDamage(`The log ends at entry ${lastIndex} but entry ${commit} was committed: it has lost its end.`);
  }
  const lastTerm = terms.at(-1)?.term ?? base.term;
  if (hardState.term < lastTerm) {
    throw new LogDamage(`The stored term ${hardState.term} is older than the log's last entry, of term ${lastTerm}.`);
  }
  return commit;
}
