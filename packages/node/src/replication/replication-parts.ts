import type { Readable } from 'node:stream';
import type { Barrier } from '@transitd/barrier';
import type { Cluster, MemberEvents, NodeRole, Storage } from '@transitd/cluster';
import type { Logger } from '@transitd/process';
import type { CommitResult, ReplicationStep } from '@transitd/storage-fsm';

/** The parts of a node that replication between clusters uses. */
export interface ReplicationParts {
  readonly storage: Storage;
  readonly barrier: Barrier;
  readonly cluster: Cluster;
  readonly role: NodeRole;
  readonly events: MemberEvents;
  /** Name of this node. */
  readonly node: string;
  /** The data directory of this node. */
  readonly directory: string;
  /** Returns an archive of the present state. @throws StoreError */
  readonly snapshots: { take(): Promise<Readable> };
  /** How many requests may wait for secondaries that are late to confirm key material. */
  readonly lateRequestsMax: number;
  readonly log: Logger;
  /** Monotonic clock, in milliseconds. */
  readonly nowMs: () => number;
  /** Milliseconds since 1970. */
  readonly utcMs: () => number;
}

/** Commits one step as one log entry. @throws StoreError */
export const commitStep = ({ storage }: Pick<ReplicationParts, 'storage'>, replication: ReplicationStep): Promise<CommitResult> =>
  storage.replica.commit({ conditions: [], writes: [], replication });
