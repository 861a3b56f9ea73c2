import type { LogIndex } from '@transitd/raft-core';
import type { FeatureLevel } from '../level/feature-levels.ts';
import type { ReplicationStep } from './replication-step.ts';
import type { RestoreStep } from './restore-step.ts';
import type { Condition, Write } from './write.ts';

/** A conditional change of records. */
export interface Transaction {
  readonly conditions: readonly Condition[];
  readonly writes: readonly Write[];
}

/** The content of one log entry: a change of records, a step of a restore or of replication, or the new feature level. */
export type Command =
  | Transaction
  | { readonly restore: RestoreStep }
  | { readonly raise: FeatureLevel }
  | { readonly replication: ReplicationStep };

const kinds = ['writes', 'restore', 'raise', 'replication'] as const;

/**
 * Call it before a command is rebuilt or encoded, which would drop what it has of another kind.
 * @throws TypeError for a mixture of kinds, which the compiler accepts
 */
export function requireOneKind(command: Command): void {
  let present = 0;
  for (const kind of kinds) if (kind in command) present += 1;
  if (present !== 1) throw new TypeError('a command is of one kind');
}

/**
 * Returns the writes of a committed entry, or `conflict`, without any writes, when a condition no longer holds.
 * The caller stores the writes, their new revision (the entry's index), the digest and the applied index in one batch.
 */
export function applyTransaction(
  { conditions, writes }: Transaction,
  revisionOf: (path: string) => LogIndex,
): { readonly writes: readonly Write[] } | 'conflict' {
  return conditions.every(({ path, revision }) => revisionOf(path) === revision) ? { writes } : 'conflict';
}
