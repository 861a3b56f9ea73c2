import type { LogIndex } from '@transitd/raft-core';
import type { FeatureLevel, Replica, ReplicationState } from '@transitd/storage-fsm';

/** A cluster of a replication set, as a restore sees it. */
export interface ReplicationSet {
  readonly state: ReplicationState;
  /** Log index of the present records. */
  readonly appliedIndex: LogIndex;
  /** Paths of replicated records that belong to the set rather than to the state: a restore keeps them. */
  readonly kept: readonly string[];
}

/** The part of an engine that backups and restores use. */
export interface SnapshotEngine {
  readonly replica: Pick<Replica, 'commit' | 'status'>;
  readonly featureLevel: FeatureLevel;
  /** Undefined if the cluster is in no replication set. */
  readonly set: ReplicationSet | undefined;
  /** Path prefixes whose records a restore keeps as they are. */
  readonly keep: readonly string[];
  /** Whether less than the reserve is free on the data disk. */
  diskLow(): boolean;
  /** Encodes a state that contains everything that was acknowledged before the call. @throws StoreError */
  backup(): Promise<AsyncIterable<Uint8Array>>;
  /** Deletes the leftovers of ended restores, but nothing of the restore that is `underWay`. @throws StoreError */
  clearLeftovers(underWay: string | undefined): Promise<void>;
}
