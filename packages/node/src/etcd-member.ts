import type { RequestListener } from 'node:http';
import { BarrierError } from '@transitd/barrier';
import { FeatureLevelControl, RegisteredPeers } from '@transitd/cluster';
import { LogLimit, reasonOf, StartError } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { UnsupportedLevel } from '@transitd/storage-fsm';
import type { ClusterMemberParts } from './cluster-member.ts';
import { EtcdEngine } from './etcd/etcd-engine.ts';
import { type EtcdConfig, openEtcd } from './etcd/open-etcd.ts';
import { LeadershipLog } from './leadership-log.ts';
import type { EncryptedStore, NodeMember } from './member.ts';
import { openBarrier } from './open-barrier.ts';
import { Snapshots } from './snapshots/snapshots.ts';
import { newNodeId } from './storage/data-directory.ts';

export interface EtcdMemberParts extends ClusterMemberParts {
  readonly storage: EtcdConfig;
}

/** This node as a member of a cluster that keeps its records in etcd. It has another id after each start, and no disk of its own. */
export class EtcdMember implements NodeMember {
  readonly removed = false;
  readonly storage = undefined;
  readonly cluster = undefined;
  readonly #parts: EtcdMemberParts;
  readonly #leadershipLog: LeadershipLog;
  readonly #logLimit: LogLimit;
  #engine: EtcdEngine | undefined;
  #peers: RegisteredPeers | undefined;
  #store: EncryptedStore | undefined;
  #snapshots: Snapshots | undefined;
  #featureLevel: FeatureLevelControl | undefined;
  #forwarded: RequestListener | undefined;
  /** This node creates the cluster: until its records are there, it is the active node although it has no keys. */
  #isFounding = false;

  constructor(parts: EtcdMemberParts) {
    this.#parts = parts;
    const nowMs = (): number => performance.now();
    this.#logLimit = new LogLimit({ log: parts.log, nowMs });
    const nameOf = (id: number): string | undefined => this.#peers?.membershipList.member(id)?.name;
    this.#leadershipLog = new LeadershipLog({ log: parts.log, nowMs, nameOf });
  }

  get engine(): EtcdEngine | undefined {
    return this.#engine;
  }

  get peers(): RegisteredPeers | undefined {
    return this.#peers;
  }

  get store(): EncryptedStore | undefined {
    return this.#store;
  }

  get snapshots(): Snapshots | undefined {
    return this.#snapshots;
  }

  get featureLevel(): FeatureLevelControl | undefined {
    return this.#featureLevel;
  }

  requireStore(): EncryptedStore {
    if (this.#store === undefined) throw new BarrierError('not_initialized', 'transitd is not initialized');
    return this.#store;
  }

  serveForwarded(listener: RequestListener): void {
    this.#forwarded = listener;
    this.#peers?.serveForwarded(listener);
  }

  /** Connects to etcd and reads the state. @throws StartError */
  async start(): Promise<void> {
    const { storage, config, log, observer, onFatal, gateways } = this.#parts;
    const etcd = await openEtcd(storage);
    try {
      const options = { etcd, prefix: storage.prefix, nodeId: newNodeId(), heartbeatMs: config.cluster_heartbeat_interval };
      const engine = await EtcdEngine.open({
        ...{ ...options, log, observer, onFatal },
        onStatus: (status) => this.#statusChanged(status),
        onLease: (endMs) => gateways?.lease(endMs),
        onNodes: () => this.#peers?.nodesChanged(),
        onClockJump: (ms) =>
          this.#logLimit.write('warn', 'clock jump', { jumpMs: Math.round(ms) }, 'a clock of this machine jumped'),
      });
      this.#engine = engine;
      await this.#open(engine);
    } catch (error) {
      await this.stop();
      etcd.close();
      if (error instanceof UnsupportedLevel) throw error;
      throw new StartError(`storage: etcd at ${storage.endpoints.join(', ')} cannot be used: ${reasonOf(error)}`);
    }
  }

  async found<T>(initialize: (store: EncryptedStore) => Promise<T>): Promise<T> {
    const store = this.requireStore();
    const isFounded = (): boolean => store.barrier.state.initialized;
    if (isFounded()) return initialize(store); // which refuses
    this.#isFounding = true;
    this.updateFitness();
    try {
      await this.#engine?.leadsOr(isFounded);
      return await initialize(store);
    } finally {
      this.#isFounding = false;
      this.updateFitness();
    }
  }

  async stop(): Promise<void> {
    this.#store?.barrier.close();
    this.#parts.gateways?.closed();
    this.#store = undefined;
    this.#snapshots = undefined;
    this.#featureLevel = undefined;
    await this.#peers?.close();
    await this.#engine?.stop();
    this.#engine = undefined;
    this.#peers = undefined;
  }

  servicesChanged(): void {
    this.updateFitness();
  }

  /** Only a node with the keys of the cluster may be active. Called every second, too: it lets the cluster port follow the seal. */
  updateFitness(): void {
    if (this.#engine !== undefined) this.#engine.mayLead = this.#isFounding || this.#parts.serviceLoader.services !== undefined;
    void this.#peers?.update();
  }

  async #open(engine: EtcdEngine): Promise<void> {
    const { config, serviceLoader, log, directory, apiAddress, isActive, report, observer, gateways } = this.#parts;
    const { replica } = engine;
    gateways?.follow(replica);
    const barrier = await openBarrier(this.#parts, replica);
    const peers = new RegisteredPeers({
      ...{ config, log, observer, apiAddress, isActive, report, engine, barrier, registry: engine.registry },
      isUnsealed: () => serviceLoader.services !== undefined,
    });
    this.#peers = peers;
    if (this.#forwarded !== undefined) peers.serveForwarded(this.#forwarded);
    this.#featureLevel = new FeatureLevelControl({
      // A node that registers after the decision and does not support the level ends itself (decision 122).
      levels: { replica, level: () => engine.featureLevel, others: () => peers.levels, undisturbed: (task) => task() },
      self: config.node_id,
      raiseAfterMs: config.feature_level_raise_after,
      nowMs: () => performance.now(),
      log,
    });
    this.#store = { replica, barrier, replication: undefined };
    this.#snapshots = new Snapshots({
      ...{ engine: engine.snapshots, barrier, directory: directory.path, log },
      authority: async () => undefined, // the restored state has one
      restoreAuthority: async () => undefined,
    });
  }

  #statusChanged(status: DriverStatus): void {
    this.#leadershipLog.statusChanged(status);
    this.#parts.onStatus(status);
    if (status.ready) this.#featureLevel?.leadershipBegins();
    else this.#store?.barrier.dropAttempts(); // the next active node does not know them
    this.#peers?.statusChanged(status);
    void this.#peers?.update();
  }
}
