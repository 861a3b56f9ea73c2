import { rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { BarrierError, type InitializeRequest, type SealConfig, type SealStatus } from '@transitd/barrier';
import { type Cluster, type JoinDesk, JoinError } from '@transitd/cluster';
import { type Config, sealConfig } from '@transitd/configuration';
import { defaultCodes, type HealthQuery, healthAnswer, type NodeStatus } from '@transitd/health';
import { type Logger, type NodeObserver, noObserver, StartError } from '@transitd/process';
import { type DriverStatus, type NodeId, votersOf } from '@transitd/raft-core';
import { type ReplicaStatus, StoreError } from '@transitd/storage-fsm';
import { bootstrapCluster, type Initialized } from './bootstrap.ts';
import { NodeClock } from './clock/node-clock.ts';
import { ClusterMember, type EncryptedStore, removedText } from './cluster-member.ts';
import { AddressRate } from './join/address-rate.ts';
import { JoinAttempts } from './join/join-attempts.ts';
import type { JoinTarget } from './join/joining.ts';
import { GivenShares, sharesAreKept } from './join/share-retention.ts';
import { LeadershipObserver } from './leadership-observer.ts';
import { NodeMaintenance } from './maintenance.ts';
import { ReadEligibility } from './read-eligibility.ts';
import { ServiceLoader } from './service-loader.ts';
import type { Services } from './services.ts';
import { type Snapshots, transfersIn } from './snapshots/snapshots.ts';
import { nodeStatus, sealBefore } from './status.ts';
import { DataDirectory } from './storage/data-directory.ts';

/** As health is asked without a query. */
const plainHealth: HealthQuery = { standbyOk: false, performanceStandbyOk: false, codes: defaultCodes };

export interface NodeOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly onFatal: (error: Error) => void;
  readonly observer?: NodeObserver;
  /** The form of a path in which quotas count requests; as written when absent. */
  readonly canonicalPath?: (path: string) => string;
}

/**
 * One node of a cluster: uninitialised, joining, sealed, standing by or active. Everything above it asks here what the node can do
 * now; nothing above it keeps a copy of the answer.
 */
export class Node {
  readonly config: Config;
  /** By what state a request may be answered here. */
  readonly eligibility: ReadEligibility;
  /** What it does by itself. */
  readonly maintenance: NodeMaintenance;
  /** Its time of day. */
  readonly clock: NodeClock;
  readonly #seal: SealConfig;
  readonly #log: Logger;
  readonly #observer: NodeObserver;
  readonly #lead: LeadershipObserver;
  readonly #directory: DataDirectory;
  readonly #serviceLoader: ServiceLoader;
  readonly #clusterMember: ClusterMember;
  readonly #joinAttempts: JoinAttempts;
  readonly #givenShares = new GivenShares(() => performance.now());
  readonly #joins = new AddressRate(
    { rate: 5, intervalS: 50, blockIntervalS: 0 },
    { refusal: 'too many joins were asked for by this address', now: () => performance.now() },
  );
  /** An operator sealed it: it does not unseal itself before the next start. */
  #sealedByHand = false;
  #activeSince: Date | undefined;
  #stopping: Promise<void> | undefined;
  #listener: string | undefined;

  private constructor(
    { config, log, onFatal, observer = noObserver, canonicalPath = (path) => path }: NodeOptions,
    seal: SealConfig,
    directory: DataDirectory,
  ) {
    this.config = config;
    this.#seal = seal;
    this.#directory = directory;
    this.#log = log;
    this.#observer = observer;
    this.#lead = new LeadershipObserver(observer, () => performance.now());
    this.clock = new NodeClock({ log });
    const { clock } = this;
    const serviceLoader = new ServiceLoader({ config, log, clock, observer, canonicalPath }, () => this.#servingChanged());
    const isActive = (): boolean => this.active;
    const apiAddress = (): string => this.apiAddress;
    const part = new ClusterMember({
      config,
      seal,
      log,
      clock,
      directory,
      serviceLoader,
      observer,
      onFatal,
      onStatus: (status) => this.#statusChanged(status),
      apiAddress,
      isActive,
    });
    this.#joinAttempts = new JoinAttempts({
      config,
      seal,
      directory,
      log,
      apiAddress,
      isListening: () => this.#listener !== undefined,
      isMember: () => part.store !== undefined,
      start: (joining) => part.start(joining),
    });
    this.eligibility = new ReadEligibility({
      config,
      serves: () => serviceLoader.services !== undefined,
      storage: () => part.storage,
      cluster: () => part.cluster,
      observer,
    });
    const unsealAgain = (): Promise<void> => this.#unsealAgain();
    const healthCode = (): number =>
      healthAnswer(this.status, plainHealth, { monotonicMs: performance.now(), utcMs: Date.now() }).code;
    const joinAttempts = this.#joinAttempts;
    this.maintenance = new NodeMaintenance({
      joinAttempts,
      part,
      serviceLoader,
      log,
      clock,
      observer,
      isActive,
      unsealAgain,
      healthCode,
    });
    this.#serviceLoader = serviceLoader;
    this.#clusterMember = part;
  }

  /**
   * Takes `data_dir` and opens what it holds; a static seal is unsealed at once.
   * @throws StartError, StorageDamaged, StorageInUse, StorageFailed
   */
  static async open(options: NodeOptions): Promise<Node> {
    const { config } = options;
    const seal = sealConfig(config);
    const directory = await DataDirectory.open(config.data_dir);
    await rm(transfersIn(directory.path), { recursive: true, force: true });
    const node = new Node(options, seal, directory);
    try {
      if (await directory.holdsNode()) {
        await node.#clusterMember.start();
        if (!node.removed) await node.#autoUnseal();
      }
      node.maintenance.begin();
      return node;
    } catch (error) {
      await node.stop().catch(() => undefined); // the first error tells more
      throw error instanceof BarrierError ? new StartError(`seal: ${error.message}`) : error;
    }
  }

  /** Nothing before this node belongs to a cluster. */
  get store(): EncryptedStore | undefined {
    return this.#clusterMember.store;
  }

  /** What it does together with others; nothing on a node that nobody can join. */
  get cluster(): Cluster | undefined {
    return this.#clusterMember.cluster;
  }

  /** It belongs to a cluster that has its keys, or is about to join one. */
  get initialized(): boolean {
    return (this.#clusterMember.store?.barrier.state.initialized ?? false) || this.#joinAttempts.sealStatus !== undefined;
  }

  get removed(): boolean {
    return this.#clusterMember.removed;
  }

  /** Nothing while the node is not initialised or sealed, or while what serves is still being loaded. */
  get services(): Services | undefined {
    return this.#serviceLoader.services;
  }

  /** Leads, has applied an entry of its term, and serves. */
  get active(): boolean {
    return this.eligibility.active;
  }

  /** When this node became the active one. */
  get activeSince(): Date | undefined {
    return this.active ? this.#activeSince : undefined;
  }

  /** What clients and redirects use: as configured, else the first listener. */
  get apiAddress(): string {
    return this.config.api_addr ?? this.#listener ?? '';
  }

  /** Who takes in the requests that other nodes hand on. */
  serveForwarded(front: RequestListener): void {
    this.#clusterMember.serveForwarded(front);
  }

  /** A listener has begun to answer at this address. */
  listens(address: string): void {
    this.#listener ??= address;
  }

  /** Who leads and who votes, as this node knows it. `leader` is 0 while none is known. */
  get consensus(): { readonly leader: NodeId; readonly voters: readonly NodeId[] } | undefined {
    const status = this.#clusterMember.storage?.driver.consensus();
    return status && { leader: status.leader, voters: votersOf(status.conf) };
  }

  get replicaStatus(): ReplicaStatus | undefined {
    return this.#clusterMember.store?.replica.status();
  }

  get sealStatus(): SealStatus {
    return this.#clusterMember.store?.barrier.sealStatus ?? this.#joinAttempts.sealStatus ?? sealBefore(this.config.seal.type);
  }

  /** Present as soon as the node belongs to a cluster that is initialised, sealed or not. */
  get clusterName(): { readonly id: string; readonly name: string } | undefined {
    const id = this.initialized ? this.#clusterMember.store?.replica.status().clusterId : undefined;
    return id === undefined ? undefined : { id, name: `transitd-${id.slice(0, 8)}` };
  }

  /** Backups of the state; nothing before this node belongs to a cluster. */
  get snapshots(): Snapshots | undefined {
    return this.#clusterMember.snapshots;
  }

  /** What health reports. */
  get status(): NodeStatus {
    return nodeStatus({
      config: this.config,
      clusterName: this.clusterName,
      removed: this.#clusterMember.removed,
      initialized: this.initialized,
      services: this.services,
      commitIndex: this.replicaStatus?.commitIndex ?? 0,
      cluster: this.#clusterMember.cluster,
      eligibility: this.eligibility,
    });
  }

  /** @see bootstrapCluster; two at once are one too many. @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError */
  async initialize(request: InitializeRequest, rootTokenId?: string): Promise<Initialized> {
    const { config } = this;
    const parts = {
      config,
      seal: this.#seal,
      directory: this.#directory,
      part: this.#clusterMember,
      serviceLoader: this.#serviceLoader,
    };
    return this.#joinAttempts.alone('initialized', () => bootstrapCluster(parts, request, rootTokenId));
  }

  /**
   * Joins the cluster of the first of these addresses that lets it in. A member stays what it is, and calls nobody: the caller needs no
   * token, so this node would ask any address on behalf of anybody.
   * @param from - address of the caller
   * @returns whether it is a member now; a Shamir seal's shares come first, and the join is done with the last of them. One that is to be
   * retried goes on in the background.
   * @throws JoinError, one for all that may come of the calls; RateLimited; StoreError
   */
  async join(request: JoinTarget, from: string): Promise<{ readonly joined: boolean }> {
    await this.#joinAttempts.resume();
    if (this.#clusterMember.removed) throw new JoinError('node_removed', removedText);
    if (this.#clusterMember.store !== undefined) return { joined: true };
    this.#joins.admit(from);
    if (this.sealStatus.progress > 0) this.#givenShares.admitReset(from);
    return this.#joinAttempts.join(request);
  }

  /**
   * Forgets the shares given so far, unless the newest of them is too new: the caller needs no token.
   * @param from - address of the caller
   * @returns the state, and why nothing was forgotten where that is so
   * @throws BarrierError `unsealed`; RateLimited
   */
  resetUnseal(from: string): { readonly status: SealStatus; readonly ignored?: string } {
    if (this.sealStatus.progress > 0) {
      if (this.#givenShares.keptMs > 0) return { status: this.sealStatus, ignored: sharesAreKept };
      this.#givenShares.admitReset(from);
    }
    this.#joinAttempts.reset();
    return { status: this.#clusterMember.store?.barrier.resetUnseal() ?? this.sealStatus };
  }

  /** Takes a share; resolves when, with the last one, the node serves. @throws BarrierError, JoinError, StoreError */
  async unseal(share: Uint8Array): Promise<SealStatus> {
    if (this.#clusterMember.removed) throw new StoreError('sealed', removedText);
    if (this.#clusterMember.store === undefined && (await this.#joinAttempts.addShare(share))) {
      this.#givenShares.given();
      return this.sealStatus;
    }
    this.#sealedByHand = false;
    const status = await this.#clusterMember.requireStore().barrier.unseal(share);
    if (status.sealed) this.#givenShares.given(); // unsealed, it looks at no share
    await this.#serviceLoader.loaded;
    return { ...status, ...this.sealStatus };
  }

  /** Drops every key; the active node hands the lead over first. */
  async seal(): Promise<void> {
    this.#sealedByHand = true;
    await this.transferLeadership();
    this.#clusterMember.store?.barrier.seal();
  }

  /** Where other nodes ask to be let in. @throws StoreError `not_leader` unless this node is the active one */
  get joinDesk(): JoinDesk {
    const desk = this.active ? this.#clusterMember.cluster?.joinDesk : undefined;
    if (desk === undefined) throw new StoreError('not_leader', 'this node is not the active one, or has no cluster_addr');
    return desk;
  }

  /** Gives the lead to another voter, if there is one; resolves when that is done or has failed, an election timeout later at most. */
  async transferLeadership(): Promise<void> {
    const driver = this.#clusterMember.storage?.driver;
    if (driver === undefined || driver.status().role !== 'leader' || driver.consensus().conf.voters.length < 2) return;
    await new Promise((resolve) => driver.transfer(undefined, resolve));
  }

  /** An operator wants another node to be the active one. */
  async stepDown(): Promise<void> {
    const begunMs = performance.now();
    await this.transferLeadership();
    this.#observer.steppedDown(performance.now() - begunMs);
  }

  /** Seals, finishes the writes that were taken, and lets go of the data directory. An initialisation under way ends `stopped`. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.maintenance.end();
    this.#joinAttempts.close();
    this.#serviceLoader.end();
    await this.#clusterMember.stop();
    await this.#joinAttempts.ended();
    await this.#directory.close();
  }

  #statusChanged(status: DriverStatus): void {
    this.#lead.statusChanged(status);
    if (status.ready) this.#activeSince = new Date();
  }

  /** Opens a static seal. One that is static in the data or in the configuration only is told as an error: it would stay sealed for ever. */
  async #autoUnseal(): Promise<void> {
    const { barrier } = this.#clusterMember.requireStore();
    const isStatic = this.#seal.type === 'static' || barrier.sealStatus.type === 'static';
    if (!barrier.state.initialized || !isStatic) return;
    await barrier.autoUnseal();
    await this.#serviceLoader.loaded;
  }

  /** What did not unseal itself tries it again, unless it is to stay sealed. */
  async #unsealAgain(): Promise<void> {
    const { initialized = false, sealed = false } = this.store?.barrier.state ?? {};
    const mayUnseal = !this.removed && !this.#sealedByHand && this.#seal.type === 'static';
    if (!initialized || !sealed || !mayUnseal) return;
    await this.#autoUnseal().catch((error: Error) =>
      this.#log.warn({ reason: error.message }, 'the node could not unseal itself'),
    );
  }

  /** Something serves from now on, or nothing does any more. */
  #servingChanged(): void {
    if (this.#serviceLoader.services !== undefined) this.#activeSince = new Date();
    this.#clusterMember.servingChanged();
  }
}
