import type { LogIndex } from '@transitd/raft-core';
import type { RestoreStep } from './restore-step.ts';

/** Holds while the record at `path` is at `revision`, the index of the entry that last wrote it; 0 means absent. */
export interface Condition {
  readonly path: string;
  readonly revision: LogIndex;
}

/** `null` deletes the record. What the state machine sees is ciphertext by now. */
export interface Write {
  readonly path: string;
  readonly value: Uint8Array | null;
}

/** What one log entry carries. */
export interface Transaction {
  readonly conditions: readonly Condition[];
  readonly writes: readonly Write[];
  /** A step of a restore instead; such a transaction has no conditions and no writes. */
  readonly restore?: RestoreStep;
}

/**
 * What a committed entry does to the records; `conflict`, and no writes, when a condition no longer holds.
 * The caller stores the writes, their new revision (the entry's index), the digest and the applied index in one batch.
 */
export function applyTransaction(
  { conditions, writes }: Pick<Transaction, 'conditions' | 'writes'>,
  revisionOf: (path: string) => LogIndex,
): { readonly writes: readonly Write[] } | 'conflict' {
  return conditions.every(({ path, revision }) => revisionOf(path) === revision) ? { writes } : 'conflict';
}
