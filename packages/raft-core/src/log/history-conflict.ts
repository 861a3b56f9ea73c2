import { InvariantViolation } from '../invariant.ts';

/**
 * Another member contradicts an entry that is committed, so the cluster has two histories. Without a bug of this program, the disk of a
 * voter was rolled back or copied, and the voter then gave its vote without entries that it had acknowledged. Nothing tells which disk that
 * was: each may hold the only copy of acknowledged writes.
 */
export class HistoryConflict extends InvariantViolation {
  override readonly name = 'HistoryConflict';

  constructor(what: string) {
    super(
      `a committed entry is contradicted: ${what}. Probably the disk of a member was rolled back or copied. ` +
        'Stop all members, and empty no data_dir: one of them may hold the only copy of acknowledged writes',
    );
  }
}
