import type { LogIndex } from '@transitd/raft-core';
import type { FeatureLevel } from '../level/feature-levels.ts';
import type { ReplicationStep } from './replication-step.ts';
import type { RestoreStep } from './restore-step.ts';
import type { Condition, Write } from './write.ts';

/** The content of one log entry. */
export interface Transaction {
  readonly conditions: readonly Condition[];
  readonly writes: readonly Write[];
  /** A restore step; a transaction with one has no conditions and no writes. */
  readonly restore?: RestoreStep;
  /** Raises the feature level to this one; such a transaction has no conditions, no writes and no restore step. */
  readonly raise?: FeatureLevel;
  /** A replication step; a transaction with one has nothing else. */
  readonly replication?: ReplicationStep;
}

/**
 * Returns the writes of a committed entry, or `conflict`, without any writes, when a condition no longer holds.
 * The caller stores the writes, their new revision (the entry's index), the digest and the applied index in one batch.
 */
export function applyTransaction(
  { conditions, writes }: Pick<Transaction, 'conditions' | 'writes'>,
  revisionOf: (path: string) => LogIndex,
): { readonly writes: readonly Write[] } | 'conflict' {
  return conditions.every(({ path, revision }) => revisionOf(path) === revision) ? { writes } : 'conflict';
}
