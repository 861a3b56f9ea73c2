import type { RequestListener } from 'node:http';
import { type Barrier, BarrierError } from '@transitd/barrier';
import {
  authorityPath,
  Cluster,
  ConfigurationChanges,
  FeatureLevelControl,
  raftLevels,
  readAuthority,
  type Storage,
} from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import { LogLimit, type NodeObserver } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { refusalWithoutPort } from '@transitd/replication';
import { StoreError, supportedLevels, type Transaction } from '@transitd/storage-fsm';
import { fitnessOf, isAlone } from './fitness.ts';
import type { Joining } from './join/joining.ts';
import { LeadershipLog } from './leadership-log.ts';
import { type EncryptedStore, type NodeMember, removedText } from './member.ts';
import { type BarrierParts, openBarrier } from './open-barrier.ts';
import { acknowledgePath } from './replication/acknowledge-setting.ts';
import { ClusterReplication } from './replication/cluster-replication.ts';
import { successionKeyPath } from './replication/succession-key.ts';
import { raftSnapshots } from './snapshots/raft-snapshots.ts';
import { Snapshots } from './snapshots/snapshots.ts';
import type { DataDirectory } from './storage/data-directory.ts';

export interface ClusterMemberParts extends BarrierParts {
  readonly config: Config;
  readonly directory: DataDirectory;
  readonly observer: NodeObserver;
  readonly onFatal: (error: Error) => void;
  readonly onStatus: (status: DriverStatus) => void;
  readonly apiAddress: () => string;
  readonly isActive: () => boolean;
  /** Returns this node's report on itself. */
  readonly report: () => Promise<object>;
}

/** This node as a member of a cluster: its storage, its barrier, and its ties to the other members. */
export class ClusterMember implements NodeMember {
  readonly #parts: ClusterMemberParts;
  readonly #logLimit: LogLimit;
  readonly #leadershipLog: LeadershipLog;
  #storage: Storage | undefined;
  #store: EncryptedStore | undefined;
  #cluster: Cluster | undefined;
  #snapshots: Snapshots | undefined;
  /** On a node that no other node can join. */
  #featureLevel: FeatureLevelControl | undefined;
  #removed = false;
  #stopping = false;
  #forwarded: RequestListener | undefined;

  constructor(parts: ClusterMemberParts) {
    this.#parts = parts;
    const nowMs = (): number => performance.now();
    this.#logLimit = new LogLimit({ log: parts.log, nowMs });
    this.#leadershipLog = new LeadershipLog({
      log: parts.log,
      nowMs,
      nameOf: (id) => this.#cluster?.membershipList.member(id)?.name,
    });
  }

  /** Undefined until the log is open. It is defined earlier than `store`. */
  get storage(): Storage | undefined {
    return this.#storage;
  }

  get engine(): Storage | undefined {
    return this.#storage;
  }

  get featureLevel(): FeatureLevelControl | undefined {
    return this.#cluster?.featureLevel ?? this.#featureLevel;
  }

  /** Undefined until this node belongs to a cluster. */
  get store(): EncryptedStore | undefined {
    return this.#store;
  }

  /** @throws BarrierError `not_initialized` */
  requireStore(): EncryptedStore {
    if (this.#store === undefined) throw new BarrierError('not_initialized', 'transitd is not initialized');
    return this.#store;
  }

  /** This node's ties to the other members; undefined on a node that no other node can join. */
  get cluster(): Cluster | undefined {
    return this.#cluster;
  }

  get peers(): Cluster | undefined {
    return this.#cluster;
  }

  /** Backups of the state; undefined until this node belongs to a cluster. */
  get snapshots(): Snapshots | undefined {
    return this.#snapshots;
  }

  get removed(): boolean {
    return this.#removed;
  }

  /** Sets the listener for requests that other nodes forward to this one. */
  serveForwarded(listener: RequestListener): void {
    this.#forwarded = listener;
    this.#cluster?.serveForwarded(listener);
  }

  /** Opens storage, barrier and cluster port, and starts consensus. A failure undoes all of it. */
  async start(joining?: Joining): Promise<void> {
    const cluster = this.#parts.config.cluster_addr === undefined ? undefined : await this.#openCluster();
    this.#cluster = cluster;
    if (this.#forwarded !== undefined) cluster?.serveForwarded(this.#forwarded);
    let storage: Storage | undefined;
    try {
      storage = await this.#openStorage(cluster);
      await this.#startConsensus(storage, cluster, joining);
    } catch (error) {
      // Undo everything, so that the next attempt starts from nothing.
      const barrier = this.#store?.barrier;
      this.#store?.replication?.close();
      this.#store = undefined;
      this.#snapshots = undefined;
      this.#featureLevel = undefined;
      this.#storage = undefined;
      this.#cluster = undefined;
      barrier?.close();
      this.#parts.gateways?.closed();
      await storage?.stop().catch(() => undefined); // the first error is the cause
      await cluster?.close();
      throw error;
    }
  }

  async found<T>(initialize: (store: EncryptedStore) => Promise<T>): Promise<T> {
    if (this.#store === undefined) {
      const { directory } = this.#parts;
      if (!(await directory.holdsNode())) await directory.bootstrapCluster();
      await this.start();
    }
    const store = this.requireStore();
    await this.#raiseWhenNew(store);
    return initialize(store);
  }

  /**
   * Raises the feature level of a cluster that is about to be initialized to the newest one. A caller without a token may ask any node to
   * initialize, so this function changes nothing in an initialized cluster, nor in one with other nodes, which may not support that level.
   */
  async #raiseWhenNew({ barrier, replica }: EncryptedStore): Promise<void> {
    const { driver, featureLevel } = this.#storage ?? {};
    if (driver === undefined || featureLevel === undefined || featureLevel >= supportedLevels.newest) return;
    if (barrier.state.initialized || !isAlone(driver.consensus().conf, driver.status().nodeId)) return;
    await replica.commit({ conditions: [], writes: [], raise: supportedLevels.newest });
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#store?.replication?.close();
    this.#store?.barrier.close();
    this.#parts.gateways?.closed();
    await this.#storage?.stop();
    await this.#cluster?.close();
  }

  /** The services were loaded or closed. */
  servicesChanged(): void {
    this.updateFitness();
    this.#cluster?.sealChanged();
    this.#store?.replication?.tick();
  }

  /** Tells consensus whether this node may lead. */
  updateFitness(): void {
    if (this.#storage === undefined || this.#store === undefined) return;
    const { driver } = this.#storage;
    const fitness = fitnessOf({
      isUnsealed: this.#parts.serviceLoader.services !== undefined,
      reopeningForMs: this.#parts.nodeSeal().reopeningForMs,
      initialized: this.#store.barrier.state.initialized,
      alone: isAlone(driver.consensus().conf, driver.status().nodeId),
      stateDigestDiffers: this.#cluster?.stateDigestDiffers === true,
      diskLow: this.#store.replica.status().diskLow,
    });
    driver.setFitness(fitness);
  }

  #openCluster(): Promise<Cluster> {
    const { config, log, directory, serviceLoader, observer, apiAddress, isActive, report, gateways } = this.#parts;
    return Cluster.open({
      config,
      log,
      directory: directory.path,
      apiAddress,
      isActive,
      isUnsealed: () => serviceLoader.services !== undefined,
      onHeartbeatsForgotten: () => gateways?.endDeadlines(),
      onDigestMismatch: () => {
        gateways?.endDeadlines();
        this.updateFitness();
      },
      onFatal: this.#parts.onFatal,
      onRemoved: () => this.#endMembership(),
      observer,
      report,
    });
  }

  #openStorage(cluster: Cluster | undefined): Promise<Storage> {
    const { config, directory, observer, onFatal, gateways } = this.#parts;
    return directory.openStorage({
      raft: config.raft,
      observer,
      onFatal: (error) => (cluster === undefined ? onFatal(error) : cluster.storageFailed(error)),
      onStatus: (status) => this.#statusChanged(status),
      onConfiguration: () => {
        cluster?.configurationChanged();
        this.updateFitness();
      },
      onClockJump: (ms) => this.#clockJumped(ms),
      fenced: (transaction) => this.#fenceRefusal(transaction),
      ...(gateways && { onLease: (endMs: number | undefined) => gateways.lease(endMs) }),
      ...(cluster && { membership: cluster.ports }),
    });
  }

  #fenceRefusal(transaction: Transaction): string | undefined {
    if (this.#parts.config.cluster_addr === undefined) return refusalWithoutPort(this.#storage?.machine.replication, transaction);
    return this.#store?.replication?.fence.refusal(transaction);
  }

  async #startConsensus(storage: Storage, cluster: Cluster | undefined, joining: Joining | undefined): Promise<void> {
    const { directory, log } = this.#parts;
    this.#refuseWhenStopping();
    this.#storage = storage;
    this.#parts.gateways?.follow(storage.replica);
    this.#removed = cluster?.removed ?? false;
    // The log of a sole member may have acknowledged entries that are not applied yet. It must become leader and apply them before its
    // barrier is opened. In a larger cluster, a member must not wait for a leader.
    const alone = isAlone(storage.driver.consensus().conf, storage.driver.status().nodeId);
    if (alone) {
      storage.driver.start();
      await storage.leads;
    }
    // The authority is a local record of each cluster that can follow another one.
    const barrier = await openBarrier(this.#parts, storage.replica, authorityPath);
    this.#refuseWhenStopping();
    const replication = cluster && this.#newReplication({ storage, barrier, cluster });
    this.#store = { replica: storage.replica, barrier, replication };
    this.#snapshots = new Snapshots({
      engine: raftSnapshots(storage, [acknowledgePath, successionKeyPath]),
      barrier,
      directory: directory.path,
      log,
      authority: async () => (cluster === undefined ? readAuthority(barrier.store) : cluster.signingAuthority()),
      restoreAuthority: async (authority) => cluster?.restoreAuthority(authority),
    });
    if (cluster === undefined) this.#featureLevel = this.#loneFeatureLevel(storage);
    this.updateFitness();
    if (!alone) storage.driver.start();
    await cluster?.start({ storage, barrier });
    if (joining !== undefined) await this.#unsealJoined(joining, barrier);
  }

  #newReplication(
    parts: Pick<ConstructorParameters<typeof ClusterReplication>[0], 'storage' | 'barrier' | 'cluster'>,
  ): ClusterReplication {
    const { isActive, log, clock, directory, config } = this.#parts;
    return new ClusterReplication({
      ...{
        ...parts,
        isActive,
        log,
        node: config.node_id,
        directory: directory.path,
        lateRequestsMax: Math.ceil(config.limits.changes / 4), // each holds one of these places
        nowMs: () => performance.now(),
        utcMs: clock.dueNow,
      },
      takeSnapshot: () => {
        if (this.#snapshots === undefined) throw new StoreError('stopped', 'this node is not open');
        return this.#snapshots.take();
      },
    });
  }

  #loneFeatureLevel(storage: Storage): FeatureLevelControl {
    const { config, log } = this.#parts;
    return new FeatureLevelControl({
      levels: raftLevels({
        storage,
        changes: new ConfigurationChanges(storage.driver, async () => undefined),
        announced: () => undefined,
      }),
      self: config.node_id,
      raiseAfterMs: config.feature_level_raise_after,
      nowMs: () => performance.now(),
      log,
    });
  }

  /**
   * Unseals after a join. The node is a member even if the shares of its join no longer open the cluster's seal; then it waits for other
   * shares.
   */
  async #unsealJoined(joining: Joining, barrier: Barrier): Promise<void> {
    const { serviceLoader, log } = this.#parts;
    try {
      await joining.unseal(barrier);
      await serviceLoader.loaded;
    } catch (error) {
      this.#refuseWhenStopping();
      const reason = error instanceof Error ? error.message : String(error);
      log.warn(
        { reason },
        'this node has joined, but the shares given for the join do not unseal it: give it the current shares',
      );
    }
  }

  #statusChanged(status: DriverStatus): void {
    this.#leadershipLog.statusChanged(status);
    this.#parts.onStatus(status);
    if (!status.ready) this.#store?.barrier.dropAttempts(); // the next active node does not know them
    this.#cluster?.statusChanged(status);
    this.#store?.replication?.tick();
  }

  #clockJumped(ms: number): void {
    this.#logLimit.write(
      'warn',
      'clock jump',
      { jumpMs: Math.round(ms) },
      'a clock of this machine jumped against the monotonic clock: the machine was suspended or its clock was set. ' +
        'Earlier leases and heartbeats are not used',
    );
  }

  /** This node is no longer a member: it seals, so that it serves nothing and has no key in memory. */
  #endMembership(): void {
    this.#removed = true;
    this.#parts.log.error(removedText);
    this.#store?.barrier.seal('this node was removed from its cluster');
  }

  #refuseWhenStopping(): void {
    if (this.#stopping) throw new StoreError('stopped', 'this node is stopping');
  }
}
