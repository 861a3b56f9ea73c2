import { rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { BarrierError, type InitializeRequest, type SealConfig, type SealStatus } from '@transitd/barrier';
import { type Cluster, type JoinDesk, JoinError } from '@transitd/cluster';
import { type Config, sealConfig } from '@transitd/configuration';
import { defaultCodes, type HealthQuery, healthAnswer, type NodeStatus } from '@transitd/health';
import { type Logger, type NodeObserver, nobody, StartError } from '@transitd/process';
import { type DriverStatus, type NodeId, votersOf } from '@transitd/raft-core';
import { type ReplicaStatus, StoreError } from '@transitd/storage-fsm';
import { AddressRate } from './bootstrap/address-rate.ts';
import { GivenShares, sharesAreKept } from './bootstrap/given-shares.ts';
import { Entrance } from './bootstrap/join-attempts.ts';
import type { JoinTarget } from './bootstrap/joining.ts';
import { foundCluster, type Initialized } from './bootstrap.ts';
import { NodeClock } from './clock/node-clock.ts';
import { type Member, removedText, TakingPart } from './cluster-member.ts';
import { LeadObserver } from './leadership-observer.ts';
import { Routine } from './maintenance.ts';
import { Answering } from './read-eligibility.ts';
import { Serving } from './service-loader.ts';
import type { Service } from './services.ts';
import { type Snapshots, transfersIn } from './snapshots/snapshots.ts';
import { nodeStatus, sealBefore } from './status.ts';
import { DataDirectory } from './storage/storage.ts';

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
  readonly answering: Answering;
  /** What it does by itself. */
  readonly routine: Routine;
  /** Its time of day. */
  readonly clock: NodeClock;
  readonly #seal: SealConfig;
  readonly #log: Logger;
  readonly #observer: NodeObserver;
  readonly #lead: LeadObserver;
  readonly #directory: DataDirectory;
  readonly #serving: Serving;
  readonly #part: TakingPart;
  readonly #entrance: Entrance;
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
    { config, log, onFatal, observer = nobody, canonicalPath = (path) => path }: NodeOptions,
    seal: SealConfig,
    directory: DataDirectory,
  ) {
    this.config = config;
    this.#seal = seal;
    this.#directory = directory;
    this.#log = log;
    this.#observer = observer;
    this.#lead = new LeadObserver(observer, () => performance.now());
    this.clock = new NodeClock({ log });
    const { clock } = this;
    const serving = new Serving({ config, log, clock, observer, canonicalPath }, () => this.#servingChanged());
    const isActive = (): boolean => this.active;
    const apiAddress = (): string => this.apiAddress;
    const part = new TakingPart({
      config,
      seal,
      log,
      clock,
      directory,
      serving,
      observer,
      onFatal,
      onStatus: (status) => this.#statusChanged(status),
      apiAddress,
      isActive,
    });
    this.#entrance = new Entrance({
      config,
      seal,
      directory,
      log,
      apiAddress,
      isListening: () => this.#listener !== undefined,
      isMember: () => part.member !== undefined,
      start: (joining) => part.start(joining),
    });
    this.answering = new Answering({
      config,
      serves: () => serving.service !== undefined,
      storage: () => part.storage,
      cluster: () => part.cluster,
      observer,
    });
    const unsealAgain = (): Promise<void> => this.#unsealAgain();
    const healthCode = (): number =>
      healthAnswer(this.status, plainHealth, { monotonicMs: performance.now(), utcMs: Date.now() }).code;
    const entrance = this.#entrance;
    this.routine = new Routine({ entrance, part, serving, log, clock, observer, isActive, unsealAgain, healthCode });
    this.#serving = serving;
    this.#part = part;
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
        await node.#part.start();
        if (!node.removed) await node.#autoUnseal();
      }
      node.routine.begin();
      return node;
    } catch (error) {
      await node.stop().catch(() => undefined); // the first error tells more
      throw error instanceof BarrierError ? new StartError(`seal: ${error.message}`) : error;
    }
  }

  /** Nothing before this node belongs to a cluster. */
  get member(): Member | undefined {
    return this.#part.member;
  }

  /** What it does together with others; nothing on a node that nobody can join. */
  get cluster(): Cluster | undefined {
    return this.#part.cluster;
  }

  /** It belongs to a cluster that has its keys, or is about to join one. */
  get initialized(): boolean {
    return (this.#part.member?.barrier.state.initialized ?? false) || this.#entrance.sealStatus !== undefined;
  }

  get removed(): boolean {
    return this.#part.removed;
  }

  /** Nothing while the node is not initialised or sealed, or while what serves is still being loaded. */
  get service(): Service | undefined {
    return this.#serving.service;
  }

  /** Leads, has applied an entry of its term, and serves. */
  get active(): boolean {
    return this.answering.active;
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
    this.#part.serveForwarded(front);
  }

  /** A listener has begun to answer at this address. */
  listens(address: string): void {
    this.#listener ??= address;
  }

  /** Who leads and who votes, as this node knows it. `leader` is 0 while none is known. */
  get consensus(): { readonly leader: NodeId; readonly voters: readonly NodeId[] } | undefined {
    const status = this.#part.storage?.driver.consensus();
    return status && { leader: status.leader, voters: votersOf(status.conf) };
  }

  get replicaStatus(): ReplicaStatus | undefined {
    return this.#part.member?.replica.status();
  }

  get sealStatus(): SealStatus {
    return this.#part.member?.barrier.sealStatus ?? this.#entrance.sealStatus ?? sealBefore(this.config.seal.type);
  }

  /** Present as soon as the node belongs to a cluster that is initialised, sealed or not. */
  get clusterName(): { readonly id: string; readonly name: string } | undefined {
    const id = this.initialized ? this.#part.member?.replica.status().clusterId : undefined;
    return id === undefined ? undefined : { id, name: `transitd-${id.slice(0, 8)}` };
  }

  /** Backups of the state; nothing before this node belongs to a cluster. */
  get snapshots(): Snapshots | undefined {
    return this.#part.snapshots;
  }

  /** What health reports. */
  get status(): NodeStatus {
    return nodeStatus({
      config: this.config,
      clusterName: this.clusterName,
      removed: this.#part.removed,
      initialized: this.initialized,
      service: this.service,
      commitIndex: this.replicaStatus?.commitIndex ?? 0,
      cluster: this.#part.cluster,
      answering: this.answering,
    });
  }

  /** @see foundCluster; two at once are one too many. @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError */
  async initialize(request: InitializeRequest, rootTokenId?: string): Promise<Initialized> {
    const { config } = this;
    const parts = { config, seal: this.#seal, directory: this.#directory, part: this.#part, serving: this.#serving };
    return this.#entrance.alone('initialized', () => foundCluster(parts, request, rootTokenId));
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
    await this.#entrance.resume();
    if (this.#part.removed) throw new JoinError('node_removed', removedText);
    if (this.#part.member !== undefined) return { joined: true };
    this.#joins.admit(from);
    if (this.sealStatus.progress > 0) this.#givenShares.admitReset(from);
    return this.#entrance.join(request);
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
    this.#entrance.reset();
    return { status: this.#part.member?.barrier.resetUnseal() ?? this.sealStatus };
  }

  /** Takes a share; resolves when, with the last one, the node serves. @throws BarrierError, JoinError, StoreError */
  async unseal(share: Uint8Array): Promise<SealStatus> {
    if (this.#part.removed) throw new StoreError('sealed', removedText);
    if (this.#part.member === undefined && (await this.#entrance.addShare(share))) {
      this.#givenShares.given();
      return this.sealStatus;
    }
    this.#sealedByHand = false;
    const status = await this.#part.requireMember().barrier.unseal(share);
    if (status.sealed) this.#givenShares.given(); // unsealed, it looks at no share
    await this.#serving.loaded;
    return { ...status, ...this.sealStatus };
  }

  /** Drops every key; the active node hands the lead over first. */
  async seal(): Promise<void> {
    this.#sealedByHand = true;
    await this.handOver();
    this.#part.member?.barrier.seal();
  }

  /** Where other nodes ask to be let in. @throws StoreError `not_leader` unless this node is the active one */
  get joinDesk(): JoinDesk {
    const desk = this.active ? this.#part.cluster?.joinDesk : undefined;
    if (desk === undefined) throw new StoreError('not_leader', 'this node is not the active one, or has no cluster_addr');
    return desk;
  }

  /** Gives the lead to another voter, if there is one; resolves when that is done or has failed, an election timeout later at most. */
  async handOver(): Promise<void> {
    const driver = this.#part.storage?.driver;
    if (driver === undefined || driver.status().role !== 'leader' || driver.consensus().conf.voters.length < 2) return;
    await new Promise((resolve) => driver.transfer(undefined, resolve));
  }

  /** An operator wants another node to be the active one. */
  async stepDown(): Promise<void> {
    const begunMs = performance.now();
    await this.handOver();
    this.#observer.steppedDown(performance.now() - begunMs);
  }

  /** Seals, finishes the writes that were taken, and lets go of the data directory. An initialisation under way ends `stopped`. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.routine.end();
    this.#entrance.close();
    this.#serving.end();
    await this.#part.stop();
    await this.#entrance.ended();
    await this.#directory.close();
  }

  #statusChanged(status: DriverStatus): void {
    this.#lead.statusChanged(status);
    if (status.ready) this.#activeSince = new Date();
  }

  /** Opens a static seal. One that is static in the data or in the configuration only is told as an error: it would stay sealed for ever. */
  async #autoUnseal(): Promise<void> {
    const { barrier } = this.#part.requireMember();
    const isStatic = this.#seal.type === 'static' || barrier.sealStatus.type === 'static';
    if (!barrier.state.initialized || !isStatic) return;
    await barrier.autoUnseal();
    await this.#serving.loaded;
  }

  /** What did not unseal itself tries it again, unless it is to stay sealed. */
  async #unsealAgain(): Promise<void> {
    const { initialized = false, sealed = false } = this.member?.barrier.state ?? {};
    const mayUnseal = !this.removed && !this.#sealedByHand && this.#seal.type === 'static';
    if (!initialized || !sealed || !mayUnseal) return;
    await this.#autoUnseal().catch((error: Error) =>
      this.#log.warn({ reason: error.message }, 'the node could not unseal itself'),
    );
  }

  /** Something serves from now on, or nothing does any more. */
  #servingChanged(): void {
    if (this.#serving.service !== undefined) this.#activeSince = new Date();
    this.#part.servingChanged();
  }
}
