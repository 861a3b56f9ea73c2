import type { LogIndex } from '@transitd/raft-core';
import { type AppliedEntry, isLocal, type ReplicatedWrite, type ReplicationState, type Write } from '@transitd/storage-fsm';

/** The effect of the entries after the service index `from` up to `to` on the replicated records, without the conditions of the entries. */
export interface Outcome {
  readonly from: LogIndex;
  readonly to: LogIndex;
  /** The last write of each path. */
  readonly writes: readonly ReplicatedWrite[];
  /** Number of values that were encrypted for these entries, including entries that conflicted. */
  readonly valuesWritten: number;
}

/**
 * `outcome`: what secondaries have to apply. `restart`: the replicated records were replaced as a whole, so that secondaries need the state
 * at this position. `none`: the position of the cluster has not changed.
 */
export type Consequence =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  | { readonly kind: 'restart'; readonly at: LogIndex }
  | { readonly kind: 'none' };

const none: Consequence = { kind: 'none' };

/**
 * Returns what an applied entry means for the stream. The result has service indexes only: log indexes never leave the cluster.
 */
export function consequenceOf({ index, command, committed, before, after }: AppliedEntry): Consequence {
  if (after === undefined) return none;
  const step = committed && command !== undefined && 'replication' in command ? command.replication : undefined;
  switch (step?.kind) {
    case 'establish':
    case 'swap':
      return { kind: 'restart', at: after.index };
    case 'follow': {
      const { from, to, writes, valuesWritten } = step;
      return { kind: 'outcome', outcome: { from: from.index, to, writes, valuesWritten } };
    }
    case 'promote': {
      const writes = step.writes.map((write) => ({ ...write, revision: after.index }));
      const outcome = { from: before?.index ?? 0, to: after.index, writes, valuesWritten: writes.length };
      return { kind: 'outcome', outcome };
    }
    case 'restore':
      return { kind: 'restart', at: index + after.offset };
    case 'demote':
      return empty(after.index - 1, after.index);
  }
  if (after.role !== 'primary') return none;
  const at = index + after.offset;
  const writes = command !== undefined && 'writes' in command ? command.writes : [];
  const valuesWritten = writes.filter(({ value }) => value !== null).length;
  const outcome = { from: at - 1, to: at, writes: committed ? replicated(writes, after, at) : [], valuesWritten };
  return { kind: 'outcome', outcome };
}

const empty = (from: LogIndex, to: LogIndex): Consequence => ({
  kind: 'outcome',
  outcome: { from, to, writes: [], valuesWritten: 0 },
});

const replicated = (writes: readonly Write[], state: ReplicationState, revision: LogIndex): ReplicatedWrite[] =>
  writes.filter(({ path }) => !isLocal(state, path)).map(({ path, value }) => ({ path, value, revision }));
