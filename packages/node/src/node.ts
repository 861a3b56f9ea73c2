import { rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import type { AuditWriter } from '@transitd/audit';
import { BarrierError, type InitializeRequest, type ProviderHealth, type SealConfig, type SealStatus } from '@transitd/barrier';
import {
  type Cluster,
  ClusterError,
  clusterListenAddress,
  type FeatureLevelControl,
  type JoinDesk,
  type Peers,
} from '@transitd/cluster';
import { addressText, type Config } from '@transitd/configuration';
import { healthAnswer, type NodeStatus } from '@transitd/health';
import { type Logger, type NodeObserver, noObserver, StartError } from '@transitd/process';
import { type DriverStatus, type NodeId, votersOf } from '@transitd/raft-core';
import { type OpenedSeal, openSeal } from '@transitd/seals';
import { type FeatureLevel, type ReplicaStatus, StoreError } from '@transitd/storage-fsm';
import { bootstrapCluster, type Initialized } from './bootstrap.ts';
import { NodeClock, type NodeClockParts } from './clock/node-clock.ts';
import { type GatewayHost, newGatewayHost } from './gateway-host.ts';
import { AddressRate } from './join/address-rate.ts';
import { JoinAttempts } from './join/join-attempts.ts';
import type { JoinTarget } from './join/joining.ts';
import { LeadershipObserver } from './leadership-observer.ts';
import { NodeMaintenance } from './maintenance.ts';
import { type EncryptedStore, type NodeMember, removedText } from './member.ts';
import { newMember } from './new-member.ts';
import { NodeSeal } from './node-seal.ts';
import { ReadEligibility } from './read-eligibility.ts';
import { ClusterReports } from './reports/cluster-reports.ts';
import { LeadershipHistory } from './reports/leadership-history.ts';
import { nodeReport, type WorkFigures } from './reports/node-report.ts';
import { confirmationOf } from './secondary-confirmation.ts';
import { ServiceLoader } from './service-loader.ts';
import type { Services } from './services.ts';
import { type Snapshots, transfersFolder } from './snapshots/snapshots.ts';
import { clusterNamed, nodeStatus, plainHealth } from './status.ts';
import { DataDirectory } from './storage/data-directory.ts';

export interface NodeOptions {
  readonly config: Config;
  readonly log: Logger;
  /** Records what the node does without a request; absent if nothing is audited. */
  readonly audit?: AuditWriter | undefined;
  readonly onFatal: (error: Error) => void;
  readonly observer?: NodeObserver;
  /** Returns the work of this node, for its report on itself. */
  readonly work?: () => Promise<WorkFigures>;
  /** The clocks of the machine, unless replaced. */
  readonly clocks?: NodeClockParts['read'];
}

/**
 * One node of a cluster: uninitialized, joining, sealed, standby or active. The packages above it ask this class what the node can do now,
 * and keep no copy of the answer.
 */
export class Node {
  readonly config: Config;
  /** Whether this node may respond to a request, and from which state. */
  readonly eligibility: ReadEligibility;
  readonly maintenance: NodeMaintenance;
  /** The node's time of day. */
  readonly clock: NodeClock;
  /** Reports of all members, for the console and for auditors. */
  readonly reports: ClusterReports;
  /** The ends of the gateway threads; undefined on a node without gateways. */
  readonly gateways: GatewayHost | undefined;
  readonly #seal: SealConfig;
  readonly #observer: NodeObserver;
  readonly #leadershipObserver: LeadershipObserver;
  readonly #leadershipHistory = new LeadershipHistory(Date.now);
  readonly #directory: DataDirectory;
  readonly #serviceLoader: ServiceLoader;
  readonly #clusterMember: NodeMember;
  readonly #joinAttempts: JoinAttempts;
  readonly #nodeSeal: NodeSeal;
  readonly #joinRate = new AddressRate(
    { rate: 5, intervalS: 50, blockIntervalS: 0 },
    { refusal: 'too many join requests from this address', now: () => performance.now() },
  );
  #activeSince: Date | undefined;
  #stopping: Promise<void> | undefined;
  #listenerAddress: string | undefined;

  private constructor(
    { config, log, audit, onFatal, observer = noObserver, work, clocks }: NodeOptions,
    { seal, providers, random: sealRandom }: OpenedSeal,
    directory: DataDirectory,
  ) {
    this.config = config;
    this.#seal = seal;
    this.#directory = directory;
    this.#observer = observer;
    this.#leadershipObserver = new LeadershipObserver(observer, () => performance.now());
    const clock = new NodeClock({ log, ...(clocks && { read: clocks }) });
    const secondaries = confirmationOf(() => clusterMember);
    const loaderParts = { config, log, clock, observer, sealRandom, secondaries };
    const serviceLoader = new ServiceLoader(loaderParts, () => this.#servicesChanged());
    const isActive = (): boolean => this.active;
    const ties = { engine: () => clusterMember.engine, peers: () => clusterMember.peers };
    const gateways = newGatewayHost(this, clock, ties.engine);
    const apiAddress = (): string => this.apiAddress;
    const healthNow = () => healthAnswer(this.status, plainHealth, { monotonicMs: performance.now(), utcMs: Date.now() });
    const report = () =>
      nodeReport({
        config,
        health: healthNow,
        serves: () => this.eligibility.readRole,
        activeSince: () => this.activeSince,
        ...ties,
        storage: () => clusterMember.storage,
        leaders: () => this.#leadershipHistory.changes,
        disk: this.reports.disk,
        work,
      });
    const clusterMember = newMember({
      ...{ config, seal, log, clock, directory, serviceLoader, observer, onFatal, nodeSeal: () => nodeSeal },
      onStatus: (status) => this.#statusChanged(status),
      apiAddress,
      isActive,
      report,
      gateways,
    });
    const joinAttempts = new JoinAttempts({
      config,
      seal,
      directory,
      log,
      apiAddress,
      isListening: () => this.#listenerAddress !== undefined,
      isMember: () => clusterMember.store !== undefined,
      start: (joining) => clusterMember.start(joining),
    });
    const nodeSeal = new NodeSeal({ seal, providers, log, clusterMember, joinAttempts, serviceLoader });
    this.eligibility = new ReadEligibility({
      config,
      isUnsealed: () => serviceLoader.services !== undefined,
      ...ties,
      observer,
    });
    this.maintenance = new NodeMaintenance({
      joinAttempts,
      clusterMember,
      nodeSeal,
      serviceLoader,
      log,
      audit,
      clock,
      observer,
      isActive,
      healthCode: () => healthNow().code,
    });
    this.clock = clock;
    const voters = () => this.consensus?.voters;
    this.reports = new ClusterReports({ config, apiAddress, own: report, ...ties, voters });
    this.gateways = gateways;
    this.#serviceLoader = serviceLoader;
    this.#clusterMember = clusterMember;
    this.#joinAttempts = joinAttempts;
    this.#nodeSeal = nodeSeal;
  }

  /**
   * Locks `data_dir` and opens the node in it, if there is one; opens a static seal at once, and that of a provider in the background.
   * @throws StartError, StorageDamaged, StorageInUse, StorageFailed
   */
  static async open(options: NodeOptions): Promise<Node> {
    const { config, log, observer = noObserver } = options;
    const opened = openSeal(config, { log, observer, clusterId: () => node.clusterName?.id });
    const directory = await DataDirectory.open(config.data_dir);
    await rm(transfersFolder(directory.path), { recursive: true, force: true });
    const node = new Node(options, opened, directory);
    try {
      const holdsNode = await directory.holdsNode();
      if (holdsNode && config.storage.type === 'etcd')
        throw new StartError('storage.type is etcd, but data_dir holds a node with records of its own: use another data_dir');
      if (holdsNode || config.storage.type === 'etcd') {
        await node.#clusterMember.start();
        if (!node.removed) await node.#nodeSeal.unsealAtStart();
      }
      node.maintenance.start();
      return node;
    } catch (error) {
      await node.stop().catch(() => undefined); // the first error is the cause
      throw error instanceof BarrierError ? new StartError(`seal: ${error.message}`) : error;
    }
  }

  /** Undefined until this node belongs to a cluster. */
  get store(): EncryptedStore | undefined {
    return this.#clusterMember.store;
  }

  /** This node's ties to the other Raft members; undefined on a node that no other node can join. */
  get cluster(): Cluster | undefined {
    return this.#clusterMember.cluster;
  }

  /** This node's ties to the other nodes, whatever engine keeps the records; undefined on a node that no other node can reach. */
  get peers(): Peers | undefined {
    return this.#clusterMember.peers;
  }

  /**
   * Where the cluster port listens, and in PEM its certificate and that of the cluster's authority; undefined while the node has no
   * certificate.
   */
  get clusterPort(): { readonly address: string; readonly certificate: string; readonly authority: string } | undefined {
    const identity = this.peers?.identity;
    if (identity === undefined) return undefined;
    const { certificate, authority } = identity;
    return { address: addressText(clusterListenAddress(this.config)), certificate, authority };
  }

  /** Whether this node belongs to an initialized cluster, or is about to join one. */
  get initialized(): boolean {
    return (this.#clusterMember.store?.barrier.state.initialized ?? false) || this.#joinAttempts.sealStatus !== undefined;
  }

  get removed(): boolean {
    return this.#clusterMember.removed;
  }

  /** Undefined while the node is uninitialized or sealed, and while its services are loading. */
  get services(): Services | undefined {
    return this.#serviceLoader.services;
  }

  /** Whether this node leads, has applied an entry of its term, and its services are loaded. */
  get active(): boolean {
    return this.eligibility.active;
  }

  /** When this node became the active node. */
  get activeSince(): Date | undefined {
    return this.active ? this.#activeSince : undefined;
  }

  /** The address for clients and redirects: the configured one, else that of the first listener. */
  get apiAddress(): string {
    return this.config.api_addr ?? this.#listenerAddress ?? '';
  }

  /** Sets the listener for requests that other nodes forward to this one. */
  serveForwarded(listener: RequestListener): void {
    this.#clusterMember.serveForwarded(listener);
  }

  /** Records that a listener accepts connections at this address. */
  listeningAt(address: string): void {
    this.#listenerAddress ??= address;
  }

  /** The leader and the voters, as this node knows them. `leader` is 0 while none is known. */
  get consensus(): { readonly leader: NodeId; readonly voters: readonly NodeId[] } | undefined {
    const status = this.#clusterMember.storage?.driver.consensus();
    return status && { leader: status.leader, voters: votersOf(status.conf) };
  }

  /** Time for which a write to this node's disk has hung, in ms; 0 if none hangs. */
  get diskStalledMs(): number {
    return this.#clusterMember.engine?.diskStalledMs ?? 0;
  }

  get replicaStatus(): ReplicaStatus | undefined {
    return this.#clusterMember.store?.replica.status();
  }

  get sealStatus(): SealStatus {
    return this.#nodeSeal.status;
  }

  /** The health of the seal's provider; undefined if the seal has none. */
  get sealHealth(): ProviderHealth | undefined {
    return this.#nodeSeal.providerHealth;
  }

  /** Defined once the node belongs to an initialized cluster, sealed or not. */
  get clusterName(): { readonly id: string; readonly name: string } | undefined {
    const id = this.initialized ? this.#clusterMember.store?.replica.status().clusterId : undefined;
    return id === undefined ? undefined : clusterNamed(id);
  }

  /** Feature level of the state of this node; undefined until its log is open. */
  get appliedLevel(): FeatureLevel | undefined {
    return this.#clusterMember.engine?.featureLevel;
  }

  /** Shows and raises the feature level of the cluster; undefined until this node belongs to a cluster. */
  get featureLevel(): FeatureLevelControl | undefined {
    return this.#clusterMember.featureLevel;
  }

  /** Backups of the state; undefined until this node belongs to a cluster. */
  get snapshots(): Snapshots | undefined {
    return this.#clusterMember.snapshots;
  }

  /** The status that health reports. */
  get status(): NodeStatus {
    return nodeStatus({
      config: this.config,
      clusterName: this.clusterName,
      removed: this.#clusterMember.removed,
      initialized: this.initialized,
      services: this.services,
      commitIndex: this.replicaStatus?.commitIndex ?? 0,
      peers: this.#clusterMember.peers,
      eligibility: this.eligibility,
      sealFailure: this.sealHealth?.failure,
    });
  }

  /**
   * Initializes a new cluster with this node as its only member; one call at a time. @see bootstrapCluster
   * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
   */
  async initialize(request: InitializeRequest, rootTokenId?: string): Promise<Initialized> {
    const parts = {
      config: this.config,
      seal: this.#seal,
      clusterMember: this.#clusterMember,
      serviceLoader: this.#serviceLoader,
    };
    return this.#joinAttempts.exclusively('initialized', () => bootstrapCluster(parts, request, rootTokenId));
  }

  /**
   * Joins the cluster of the first of these addresses that admits this node. A node that is already a member calls none of them: the caller
   * needs no token, and could otherwise make this node send requests to any address.
   * @param from - address of the caller
   * @returns whether the node is a member now. With a Shamir seal the join is completed by the last share; with `retry` it is repeated in
   * the background until it succeeds.
   * @throws ClusterError, the same for every failed call; RateLimited; StoreError
   */
  async join(request: JoinTarget, from: string): Promise<{ readonly joined: boolean }> {
    await this.#joinAttempts.resume();
    if (this.#clusterMember.removed) throw new ClusterError('node_removed', removedText);
    if (this.#clusterMember.store !== undefined) return { joined: true };
    this.#joinRate.admit(from);
    this.#nodeSeal.admitDiscard(from);
    return this.#joinAttempts.join(request);
  }

  /** @see NodeSeal.reset @throws BarrierError `unsealed`; RateLimited */
  resetUnseal(from: string): { readonly status: SealStatus; readonly ignored?: string } {
    return this.#nodeSeal.reset(from);
  }

  /** @see NodeSeal.unseal @throws BarrierError, ClusterError, StoreError */
  unseal(share: Uint8Array): Promise<SealStatus> {
    return this.#nodeSeal.unseal(share);
  }

  /** @see NodeSeal.migrate @throws BarrierError, ProviderError, StoreError */
  migrateSeal(share: Uint8Array): ReturnType<NodeSeal['migrate']> {
    return this.#nodeSeal.migrate(share);
  }

  /** Drops every key; the active node transfers its leadership first. */
  async seal(): Promise<void> {
    this.#nodeSeal.keepSealed();
    await this.transferLeadership();
    this.#nodeSeal.seal();
    await this.gateways?.sealed;
  }

  /** Admits nodes to the cluster. @throws StoreError `not_leader` unless this node is the active one */
  get joinDesk(): JoinDesk {
    const desk = this.active ? this.#clusterMember.cluster?.joinDesk : undefined;
    if (desk === undefined) throw new StoreError('not_leader', 'this node is not the active one, or has no cluster_addr');
    return desk;
  }

  /** Transfers the leadership to another node, if one can take it; resolves when that succeeded or failed. */
  async transferLeadership(): Promise<void> {
    await this.#clusterMember.engine?.transferLeadership();
  }

  /** Transfers the leadership at the request of an operator. */
  async stepDown(): Promise<void> {
    const startMs = performance.now();
    await this.transferLeadership();
    this.#observer.steppedDown(performance.now() - startMs);
  }

  /** Seals, finishes the writes that were accepted, and unlocks the data directory. An initialization in progress fails with `stopped`. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.maintenance.stop();
    this.#joinAttempts.close();
    this.#serviceLoader.close();
    await this.#clusterMember.stop();
    await this.#joinAttempts.ended();
    await this.#directory.close();
  }

  #statusChanged(status: DriverStatus): void {
    this.#leadershipObserver.statusChanged(status);
    this.#leadershipHistory.statusChanged(status);
    this.#activeSince = status.ready ? (this.#activeSince ?? new Date()) : undefined;
  }

  /** The services were loaded or closed. */
  #servicesChanged(): void {
    if (this.#serviceLoader.services !== undefined) this.#activeSince = new Date();
    this.#clusterMember.servicesChanged();
    this.gateways?.servicesChanged(this.#serviceLoader.services !== undefined);
  }
}
