import type { LogIndex } from '@transitd/raft-core';
import type { ReplicationState } from '../store/replication-state.ts';
import type { Command } from '../store/transaction.ts';

/** An applied entry, with the replication state before and after it. */
export interface AppliedEntry {
  readonly index: LogIndex;
  /** Undefined for entries of consensus itself, such as the first entry of a term, and for entries in a format of a later level. */
  readonly command: Command | undefined;
  readonly committed: boolean;
  readonly before: ReplicationState | undefined;
  readonly after: ReplicationState | undefined;
}

/** Observes the entries that a state machine applies, in order, on every node. Its functions must not throw. */
export interface AppliedObserver {
  entry(applied: AppliedEntry): void;
  /**
   * Called after the machine was opened, and after a snapshot replaced its state.
   * @param position - the state's service index; undefined if the cluster never took part in replication
   */
  state(position: LogIndex | undefined): void;
}
