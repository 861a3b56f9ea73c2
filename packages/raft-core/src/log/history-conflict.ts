import { InvariantViolation } from '../invariant.ts';

/**
 * Another member contradicts an entry that is committed, so the cluster has two histories. Without a bug of this program, the disk of a
 * voter was rolled back or copied, and the voter then gave its vote without entries that it had acknowledged. Nothing tells which disk that
 * was: this one may hold the only copy of acknowledged writes.
 */
export class HistoryConflict extends InvariantViolation {
  override readonly name = 'HistoryConflict';

  constructor(what: string) {
    super(
      `two histories exist under this cluster id: ${what}. The disk of a member was rolled back or copied. ` +
        'Stop all members, and do not empty this data_dir: it may hold the only copy of acknowledged writes',
    );
  }
}
