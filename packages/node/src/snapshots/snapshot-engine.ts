import type { FeatureLevel, Replica } from '@transitd/storage-fsm';

/** The part of an engine that backups and restores use. */
export interface SnapshotEngine {
  readonly replica: Pick<Replica, 'commit' | 'status'>;
  readonly featureLevel: FeatureLevel;
  /** Whether the cluster replicates, or follows another cluster. */
  readonly isReplicated: boolean;
  /** Path prefixes whose records a restore keeps as they are. */
  readonly keep: readonly string[];
  /** Whether less than the reserve is free on the data disk. */
  diskLow(): boolean;
  /** Encodes a state that contains everything that was acknowledged before the call. @throws StoreError */
  backup(): Promise<AsyncIterable<Uint8Array>>;
  /** Deletes the leftovers of ended restores, but nothing of the restore that is `underWay`. @throws StoreError */
  clearLeftovers(underWay: string | undefined): Promise<void>;
}
