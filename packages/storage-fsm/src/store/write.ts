import type { LogIndex } from '@transitd/raft-core';

/** Holds while the record at `path` has this `revision`, the index of the log entry that last wrote it; 0 means absent. */
export interface Condition {
  readonly path: string;
  readonly revision: LogIndex;
}

/** Writes a record; a null `value` deletes it. The state machine sees only ciphertext. */
export interface Write {
  readonly path: string;
  readonly value: Uint8Array | null;
}
