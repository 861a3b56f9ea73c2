import type { RequestListener } from 'node:http';
import type { Barrier } from '@transitd/barrier';
import type { Cluster, Engine, FeatureLevelControl, Peers, Storage } from '@transitd/cluster';
import type { Replica } from '@transitd/storage-fsm';
import type { Joining } from './join/joining.ts';
import type { ClusterReplication } from './replication/cluster-replication.ts';
import type { Snapshots } from './snapshots/snapshots.ts';

/** The records of this node's cluster, and the barrier that encrypts them, sealed or not. */
export interface EncryptedStore {
  readonly replica: Replica;
  readonly barrier: Barrier;
  /** Replication with another cluster; undefined on a node without a cluster port. */
  readonly replication: ClusterReplication | undefined;
}

/** This node as a member of a cluster, whatever engine keeps the records. The last two are undefined unless that is Raft. */
export interface NodeMember {
  /** Undefined until the records are open. It is defined earlier than `store`. */
  readonly engine: Engine | undefined;
  /** This node's ties to the other nodes; undefined on a node that no other node can reach. */
  readonly peers: Peers | undefined;
  /** Undefined until this node belongs to a cluster. */
  readonly store: EncryptedStore | undefined;
  /** @throws BarrierError `not_initialized` */
  requireStore(): EncryptedStore;
  readonly removed: boolean;
  /** Sets the listener for requests that other nodes forward to this one. */
  serveForwarded(listener: RequestListener): void;
  /** Opens everything. A failure undoes all of it. */
  start(joining?: Joining): Promise<void>;
  /**
   * Runs `initialize` on this node as the active one of a cluster without records.
   * @throws BarrierError `already_initialized`; StoreError
   */
  found<T>(initialize: (store: EncryptedStore) => Promise<T>): Promise<T>;
  /** Seals, and finishes the writes that were accepted; a start in progress fails with `stopped`. */
  stop(): Promise<void>;
  /** The services were loaded or closed. */
  servicesChanged(): void;
  /** Decides again whether this node may be the active one. */
  updateFitness(): void;
  /** Backups of the state; undefined until this node belongs to a cluster. */
  readonly snapshots: Snapshots | undefined;
  /** Undefined until this node belongs to a cluster. */
  readonly featureLevel: FeatureLevelControl | undefined;
  readonly storage: Storage | undefined;
  readonly cluster: Cluster | undefined;
}

export const removedText = 'this node was removed from its cluster: to let it join again, stop it, empty data_dir and start it';
