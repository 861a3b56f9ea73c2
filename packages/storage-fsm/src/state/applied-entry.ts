import type { LogIndex } from '@transitd/raft-core';
import type { ReplicationState } from '../store/replication-state.ts';
import type { Transaction } from '../store/transaction.ts';

/** An applied entry, with the replication state before and after it. */
export interface AppliedEntry {
  readonly index: LogIndex;
  /** Undefined for an entry of consensus itself, such as the first one of a term, and for one in a format of a later level. */
  readonly transaction: Transaction | undefined;
  readonly committed: boolean;
  readonly before: ReplicationState | undefined;
  readonly after: ReplicationState | undefined;
}

/** Follows what a state machine applies, on every node, in order. Its functions must not throw. */
export interface AppliedObserver {
  entry(applied: AppliedEntry): void;
  /**
   * The machine was just opened, or a snapshot replaced its state.
   * @param position - the state's service index; undefined if the cluster never took part in replication
   */
  state(position: LogIndex | undefined): void;
}
