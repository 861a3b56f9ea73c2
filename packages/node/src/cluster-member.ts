import type { RequestListener } from 'node:http';
import { Barrier, BarrierError, type SealConfig } from '@transitd/barrier';
import { Cluster, readAuthority, type Storage } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import { type Logger, LogLimit, type NodeObserver } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { type Replica, StoreError } from '@transitd/storage-fsm';
import type { NodeClock } from './clock/node-clock.ts';
import { fitnessOf, isAlone } from './fitness.ts';
import type { Joining } from './join/joining.ts';
import { LeadershipLog } from './leadership-log.ts';
import type { ServiceLoader } from './service-loader.ts';
import { Snapshots } from './snapshots/snapshots.ts';
import type { DataDirectory } from './storage/data-directory.ts';

/** A cluster that exists: consensus, records and the barrier over them, sealed or not. */
export interface EncryptedStore {
  readonly replica: Replica;
  readonly barrier: Barrier;
}

export interface ClusterMemberParts {
  readonly config: Config;
  readonly seal: SealConfig;
  readonly log: Logger;
  readonly clock: NodeClock;
  readonly directory: DataDirectory;
  readonly serviceLoader: ServiceLoader;
  readonly observer: NodeObserver;
  readonly onFatal: (error: Error) => void;
  readonly onStatus: (status: DriverStatus) => void;
  readonly apiAddress: () => string;
  readonly isActive: () => boolean;
}

export const removedText = 'this node was removed from its cluster: it can only join again with an empty data directory';

/** A node's part in a cluster: its log, its records and the barrier over them, and the ways to its peers. */
export class ClusterMember {
  readonly #parts: ClusterMemberParts;
  readonly #logLimit: LogLimit;
  readonly #leadershipLog: LeadershipLog;
  #storage: Storage | undefined;
  #store: EncryptedStore | undefined;
  #cluster: Cluster | undefined;
  #snapshots: Snapshots | undefined;
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

  /** Present from the moment that the log is open, before there is a member. */
  get storage(): Storage | undefined {
    return this.#storage;
  }

  /** Nothing before this node belongs to a cluster. */
  get store(): EncryptedStore | undefined {
    return this.#store;
  }

  /** @throws BarrierError `not_initialized` */
  requireStore(): EncryptedStore {
    if (this.#store === undefined) throw new BarrierError('not_initialized', 'transitd is not initialized');
    return this.#store;
  }

  /** What it does together with others; nothing on a node that nobody can join. */
  get cluster(): Cluster | undefined {
    return this.#cluster;
  }

  /** Backups of the state; nothing before this node belongs to a cluster. */
  get snapshots(): Snapshots | undefined {
    return this.#snapshots;
  }

  get removed(): boolean {
    return this.#removed;
  }

  /** Who takes in the requests that other nodes hand on. */
  serveForwarded(front: RequestListener): void {
    this.#forwarded = front;
    this.#cluster?.serveForwarded(front);
  }

  /** Opens log and records, and begins. A failure leaves nothing of it. */
  async start(joining?: Joining): Promise<void> {
    const cluster = this.#parts.config.cluster_addr === undefined ? undefined : await this.#openCluster();
    this.#cluster = cluster;
    if (this.#forwarded !== undefined) cluster?.serveForwarded(this.#forwarded);
    let storage: Storage | undefined;
    try {
      storage = await this.#openStorage(cluster);
      await this.#begin(storage, cluster, joining);
    } catch (error) {
      // Whatever was begun is undone, so that the next attempt finds nothing of it.
      const barrier = this.#store?.barrier;
      this.#store = undefined;
      this.#snapshots = undefined;
      this.#storage = undefined;
      this.#cluster = undefined;
      barrier?.close();
      await storage?.stop().catch(() => undefined); // the first error tells more
      await cluster?.close();
      throw error;
    }
  }

  /** Seals, and finishes the writes that were taken; a start under way ends `stopped`. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#store?.barrier.close();
    await this.#storage?.stop();
    await this.#cluster?.close();
  }

  /** Something serves from now on, or nothing does any more. */
  servingChanged(): void {
    this.noteFitness();
    this.#cluster?.sealChanged();
  }

  /** Consensus is told whether this node may lead. */
  noteFitness(): void {
    if (this.#storage === undefined || this.#store === undefined) return;
    const { driver } = this.#storage;
    const fitness = fitnessOf({
      serves: this.#parts.serviceLoader.services !== undefined,
      initialized: this.#store.barrier.state.initialized,
      alone: isAlone(driver.consensus().conf, driver.status().nodeId),
      differs: this.#cluster?.differs === true,
      diskLow: this.#store.replica.status().diskLow,
    });
    driver.setFitness(fitness);
  }

  #openCluster(): Promise<Cluster> {
    const { config, log, directory, serviceLoader, observer, apiAddress, isActive } = this.#parts;
    return Cluster.open({
      config,
      log,
      directory: directory.path,
      apiAddress,
      isActive,
      isUnsealed: () => serviceLoader.services !== undefined,
      onDifference: () => this.noteFitness(),
      onFatal: this.#parts.onFatal,
      onRemoved: () => this.#endMembership(),
      observer,
    });
  }

  #openStorage(cluster: Cluster | undefined): Promise<Storage> {
    const { config, directory, observer, onFatal } = this.#parts;
    return directory.openStorage({
      raft: config.raft,
      observer,
      onFatal: (error) => (cluster === undefined ? onFatal(error) : cluster.storageFailed(error)),
      onStatus: (status) => this.#statusChanged(status),
      onConfiguration: () => {
        cluster?.configurationChanged();
        this.noteFitness();
      },
      onClockJump: (ms) => this.#clockJumped(ms),
      ...(cluster && { membership: cluster.ports }),
    });
  }

  async #begin(storage: Storage, cluster: Cluster | undefined, joining: Joining | undefined): Promise<void> {
    const { directory, log } = this.#parts;
    this.#refuseWhenStopping();
    this.#storage = storage;
    this.#removed = cluster?.removed ?? false;
    // What a single node acknowledged may still lie in its log only; among several, a node may not wait for a leader.
    const alone = isAlone(storage.driver.consensus().conf, storage.driver.status().nodeId);
    if (alone) {
      storage.driver.start();
      await storage.leads;
    }
    const barrier = await this.#openBarrier(storage.replica);
    this.#refuseWhenStopping();
    this.#store = { replica: storage.replica, barrier };
    this.#snapshots = new Snapshots({
      storage,
      barrier,
      directory: directory.path,
      log,
      authority: async () => (cluster === undefined ? readAuthority(barrier.store) : cluster.signingAuthority()),
      restoreAuthority: async (authority) => cluster?.restoreAuthority(authority),
    });
    this.noteFitness();
    if (!alone) storage.driver.start();
    await cluster?.start({ storage, barrier });
    if (joining !== undefined) await this.#unsealJoined(joining, barrier);
  }

  async #openBarrier(replica: Replica): Promise<Barrier> {
    const { config, seal, serviceLoader } = this.#parts;
    const barrier = await Barrier.open({
      store: replica,
      seal,
      valuesWritten: () => replica.status().valuesWritten,
      now: this.#parts.clock.dueNow,
      rotation: {
        enabled: true,
        maxOperations: config.barrier_rotation.max_operations,
        intervalMs: config.barrier_rotation.interval,
      },
    });
    serviceLoader.follow(barrier);
    return barrier;
  }

  /** A member it is by now, whatever becomes of its shares: when those are the cluster's no more, it waits for others. */
  async #unsealJoined(joining: Joining, barrier: Barrier): Promise<void> {
    const { serviceLoader, log } = this.#parts;
    try {
      await joining.unseal(barrier);
      await serviceLoader.loaded;
    } catch (error) {
      this.#refuseWhenStopping();
      const reason = error instanceof Error ? error.message : String(error);
      log.warn({ reason }, 'joined, but the shares given for the join do not unseal this node');
    }
  }

  #statusChanged(status: DriverStatus): void {
    this.#leadershipLog.statusChanged(status);
    this.#parts.onStatus(status);
    if (!status.ready) this.#store?.barrier.dropAttempts(); // the next active node knows nothing of them
    this.#cluster?.statusChanged(status);
  }

  #clockJumped(ms: number): void {
    this.#logLimit.write(
      'warn',
      'clock jump',
      { jumpMs: Math.round(ms) },
      'a clock of this machine jumped against the monotonic clock: the machine was suspended or its clock was set. Leases and heartbeats from before it are not used',
    );
  }

  /** This node is no member any more: it serves nothing, and holds no key. */
  #endMembership(): void {
    this.#removed = true;
    this.#parts.log.error(removedText);
    this.#store?.barrier.seal('this node was removed from its cluster');
  }

  #refuseWhenStopping(): void {
    if (this.#stopping) throw new StoreError('stopped', 'this node is stopping');
  }
}
