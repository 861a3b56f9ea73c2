import { rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { initialAccess } from '@transitd/access';
import {
  Barrier,
  BarrierError,
  countsFor,
  type InitializeRequest,
  type InitialShares,
  type SealConfig,
  type SealStatus,
} from '@transitd/barrier';
import type { NodeStatus } from '@transitd/health';
import { type DriverStatus, type NodeId, votersOf } from '@transitd/raft-core';
import { type Replica, type ReplicaStatus, StoreError } from '@transitd/storage-fsm';
import { initialAuditKey } from '../audit/audit-key.ts';
import { Cluster } from '../cluster/cluster.ts';
import type { JoinDesk } from '../cluster/join-desk.ts';
import { JoinError } from '../cluster/join-error.ts';
import type { Config } from '../config.ts';
import { StartError } from '../exit.ts';
import type { Logger } from '../log.ts';
import { Snapshots, transfersIn } from '../snapshot/snapshots.ts';
import { Answering } from './answering.ts';
import { Entrance } from './entrance.ts';
import { clusterAt, type Joining, type JoinTarget } from './joining.ts';
import { initialMounts } from './mounts.ts';
import { LeadObserver, type NodeObserver, nobody } from './observer.ts';
import { sealConfig } from './seal-key.ts';
import type { Service } from './service.ts';
import { Serving } from './serving.ts';
import { nodeStatus, sealBefore } from './status.ts';
import { DataDirectory, type Storage } from './storage.ts';
import { keepUp } from './upkeep.ts';

/** A cluster that exists: consensus, records and the barrier over them, sealed or not. */
export interface Member {
  readonly replica: Replica;
  readonly barrier: Barrier;
}

export interface Initialized extends InitialShares {
  readonly rootToken: string;
}

export interface NodeOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly onFatal: (error: Error) => void;
  readonly observer?: NodeObserver;
}

const upkeepIntervalMs = 10_000;
const tickMs = 1000;

/**
 * One node of a cluster: uninitialised, joining, sealed, standing by or active. Everything above it asks here what the node can do
 * now; nothing above it keeps a copy of the answer.
 */
export class Node {
  readonly config: Config;
  readonly #seal: SealConfig;
  readonly #log: Logger;
  readonly #onFatal: (error: Error) => void;
  readonly #observer: NodeObserver;
  readonly #lead: LeadObserver;
  readonly #directory: DataDirectory;
  readonly #serving: Serving;
  readonly #entrance: Entrance;
  /** By what state a request may be answered here. */
  readonly answering: Answering;
  #storage: Storage | undefined;
  #member: Member | undefined;
  #cluster: Cluster | undefined;
  #snapshots: Snapshots | undefined;
  #removed = false;
  /** An operator sealed it: it does not unseal itself before the next start. */
  #sealedByHand = false;
  #activeSince: Date | undefined;
  #stopping: Promise<void> | undefined;
  #listener: string | undefined;
  #forwarded: RequestListener | undefined;
  readonly #timers: NodeJS.Timeout[] = [];
  #atUpkeep = false;

  private constructor({ config, log, onFatal, observer = nobody }: NodeOptions, seal: SealConfig, directory: DataDirectory) {
    this.config = config;
    this.#seal = seal;
    this.#directory = directory;
    this.#log = log;
    this.#onFatal = onFatal;
    this.#observer = observer;
    this.#lead = new LeadObserver(observer, () => performance.now());
    this.#serving = new Serving({ config, log }, () => this.#servingChanged());
    this.#entrance = new Entrance({
      config,
      seal,
      directory,
      log,
      apiAddress: () => this.apiAddress,
      isListening: () => this.#listener !== undefined,
      isMember: () => this.#member !== undefined,
      start: (joining) => this.#start(joining),
    });
    this.answering = new Answering({
      config,
      serves: () => this.#serving.service !== undefined,
      storage: () => this.#storage,
      cluster: () => this.#cluster,
      observer,
    });
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
        await node.#start();
        if (!node.#removed) await node.#autoUnseal();
      }
      node.#timers.push(setInterval(() => void node.#tick(), tickMs));
      node.#timers.push(setInterval(() => void node.#keepUp(), upkeepIntervalMs));
      return node;
    } catch (error) {
      await node.stop().catch(() => undefined); // the first error tells more
      throw error instanceof BarrierError ? new StartError(`seal: ${error.message}`) : error;
    }
  }

  /** Nothing before this node belongs to a cluster. */
  get member(): Member | undefined {
    return this.#member;
  }

  /** What it does together with others; nothing on a node that nobody can join. */
  get cluster(): Cluster | undefined {
    return this.#cluster;
  }

  /** It belongs to a cluster that has its keys, or is about to join one. */
  get initialized(): boolean {
    return (this.#member?.barrier.state.initialized ?? false) || this.#entrance.sealStatus !== undefined;
  }

  get removed(): boolean {
    return this.#removed;
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
    this.#forwarded = front;
    this.#cluster?.serveForwarded(front);
  }

  /** A listener has begun to answer at this address. */
  listens(address: string): void {
    this.#listener ??= address;
  }

  /** Who leads and who votes, as this node knows it. `leader` is 0 while none is known. */
  get consensus(): { readonly leader: NodeId; readonly voters: readonly NodeId[] } | undefined {
    const status = this.#storage?.driver.consensus();
    return status && { leader: status.leader, voters: votersOf(status.conf) };
  }

  get replicaStatus(): ReplicaStatus | undefined {
    return this.#member?.replica.status();
  }

  get sealStatus(): SealStatus {
    return this.#member?.barrier.sealStatus ?? this.#entrance.sealStatus ?? sealBefore(this.config.seal.type);
  }

  /** Present as soon as the node belongs to a cluster that is initialised, sealed or not. */
  get clusterName(): { readonly id: string; readonly name: string } | undefined {
    const id = this.initialized ? this.#member?.replica.status().clusterId : undefined;
    return id === undefined ? undefined : { id, name: `transitd-${id.slice(0, 8)}` };
  }

  /** Backups of the state; nothing before this node belongs to a cluster. */
  get snapshots(): Snapshots | undefined {
    return this.#snapshots;
  }

  /** What health reports. */
  get status(): NodeStatus {
    return nodeStatus({
      config: this.config,
      clusterName: this.clusterName,
      removed: this.#removed,
      initialized: this.initialized,
      service: this.service,
      commitIndex: this.replicaStatus?.commitIndex ?? 0,
      cluster: this.#cluster,
      answering: this.answering,
    });
  }

  /**
   * Founds a cluster of this one node. Its first records, the root token among them, are one transaction: a crash leaves an
   * uninitialised node or a whole one.
   * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
   */
  async initialize(request: InitializeRequest, rootTokenId?: string): Promise<Initialized> {
    return this.#entrance.alone('initialized', () => this.#initialize(request, rootTokenId));
  }

  /**
   * Joins the cluster of the first of these addresses that lets it in.
   * @returns whether it is a member now; a Shamir seal's shares come first, and the join is done with the last of them. One that is to be
   * retried goes on in the background.
   * @throws JoinError, StoreError
   */
  async join(request: JoinTarget): Promise<{ readonly joined: boolean }> {
    await this.#entrance.resume();
    if (this.#removed) throw new JoinError('node_removed', removedText);
    if (this.#member === undefined) return this.#entrance.join(request);
    if ((await clusterAt(request)) === this.answering.clusterId) return { joined: true };
    throw new JoinError('foreign_cluster', 'this node belongs to another cluster already');
  }

  /** Forgets the shares given so far. @throws BarrierError `unsealed` */
  resetUnseal(): SealStatus {
    this.#entrance.reset();
    return this.#member?.barrier.resetUnseal() ?? this.sealStatus;
  }

  /** Takes a share; resolves when, with the last one, the node serves. @throws BarrierError, JoinError, StoreError */
  async unseal(share: Uint8Array): Promise<SealStatus> {
    if (this.#removed) throw new StoreError('sealed', removedText);
    if (this.#member === undefined && (await this.#entrance.addShare(share))) return this.sealStatus;
    this.#sealedByHand = false;
    const status = await this.#requireMember().barrier.unseal(share);
    await this.#serving.loaded;
    return { ...status, ...this.sealStatus };
  }

  /** Drops every key; the active node hands the lead over first. */
  async seal(): Promise<void> {
    this.#sealedByHand = true;
    await this.handOver();
    this.#member?.barrier.seal();
  }

  /** Where other nodes ask to be let in. @throws StoreError `not_leader` unless this node is the active one */
  get joinDesk(): JoinDesk {
    const desk = this.active ? this.#cluster?.joinDesk : undefined;
    if (desk === undefined) throw new StoreError('not_leader', 'this node is not the active one, or has no cluster_addr');
    return desk;
  }

  /** Gives the lead to another voter, if there is one; resolves when that is done or has failed, an election timeout later at most. */
  async handOver(): Promise<void> {
    const driver = this.#storage?.driver;
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
    for (const timer of this.#timers) clearInterval(timer);
    this.#entrance.close();
    this.#serving.end();
    this.#member?.barrier.close();
    await this.#storage?.stop();
    await this.#cluster?.close();
    await this.#entrance.ended();
    await this.#directory.close();
  }

  #refuseWhenStopping(): void {
    if (this.#stopping !== undefined) throw new StoreError('stopped', 'this node is stopping');
  }

  #requireMember(): Member {
    if (this.#member === undefined) throw new BarrierError('not_initialized', 'transitd is not initialized');
    return this.#member;
  }

  async #initialize(request: InitializeRequest, rootTokenId: string | undefined): Promise<Initialized> {
    if (this.#member === undefined) {
      countsFor(this.#seal.type, request); // a refused request leaves no cluster behind
      if (!(await this.#directory.holdsNode())) await this.#directory.foundCluster();
      await this.#start();
    }
    const { barrier } = this.#requireMember();
    const { rootToken, writes } = initialAccess({
      now: Date.now(),
      ...(rootTokenId === undefined ? {} : { rootToken: rootTokenId }),
    });
    const shares = await barrier.initialize(request, [
      initialMounts(this.config.ciphertext_prefix),
      initialAuditKey(),
      ...writes,
    ]);
    await this.#serving.loaded;
    return { ...shares, rootToken };
  }

  /** Opens log and records, and begins to take part. */
  async #start(joining?: Joining): Promise<void> {
    const cluster = this.config.cluster_addr === undefined ? undefined : await this.#openCluster();
    this.#cluster = cluster;
    if (this.#forwarded !== undefined) cluster?.serveForwarded(this.#forwarded);
    let storage: Storage | undefined;
    try {
      storage = await this.#openStorage(cluster);
      await this.#takePart(storage, cluster, joining);
    } catch (error) {
      // Whatever was begun is undone, so that the next attempt finds nothing of it.
      const barrier = this.#member?.barrier;
      this.#member = undefined;
      this.#snapshots = undefined;
      this.#storage = undefined;
      this.#cluster = undefined;
      barrier?.close();
      await storage?.stop().catch(() => undefined); // the first error tells more
      await cluster?.close();
      throw error;
    }
  }

  #openStorage(cluster: Cluster | undefined): Promise<Storage> {
    const { config } = this;
    return this.#directory.openStorage({
      raft: config.raft,
      observer: this.#observer,
      onFatal: this.#onFatal,
      onStatus: (status) => this.#statusChanged(status),
      onConfiguration: () => {
        cluster?.configurationChanged();
        this.#noteFitness();
      },
      ...(cluster && { membership: cluster.ports }),
    });
  }

  async #takePart(storage: Storage, cluster: Cluster | undefined, joining: Joining | undefined): Promise<void> {
    this.#refuseWhenStopping();
    this.#storage = storage;
    this.#removed = cluster?.removed ?? false;
    // What a single node acknowledged may still lie in its log only; among several, a node may not wait for a leader.
    const alone = isAlone(storage);
    if (alone) {
      storage.driver.start();
      await storage.leads;
    }
    const barrier = await this.#openBarrier(storage.replica);
    this.#refuseWhenStopping();
    this.#member = { replica: storage.replica, barrier };
    this.#snapshots = new Snapshots({
      storage,
      barrier,
      directory: this.#directory.path,
      log: this.#log,
      restoreAuthority: async (authority) => cluster?.restoreAuthority(authority),
    });
    this.#noteFitness();
    if (!alone) storage.driver.start();
    await cluster?.start({ storage, barrier });
    if (joining !== undefined) await this.#unsealJoined(joining, barrier);
  }

  /** A member it is by now, whatever becomes of its shares: when those are the cluster's no more, it waits for others. */
  async #unsealJoined(joining: Joining, barrier: Barrier): Promise<void> {
    try {
      await joining.unseal(barrier);
      await this.#serving.loaded;
    } catch (error) {
      this.#refuseWhenStopping();
      this.#log.warn({ reason: reasonOf(error) }, 'joined, but the shares given for the join do not unseal this node');
    }
  }

  #openCluster(): Promise<Cluster> {
    return Cluster.open({
      config: this.config,
      log: this.#log,
      directory: this.#directory.path,
      apiAddress: () => this.apiAddress,
      isActive: () => this.active,
      isUnsealed: () => this.#serving.service !== undefined,
      onDifference: () => this.#noteFitness(),
      onFatal: this.#onFatal,
      onRemoved: () => this.#endMembership(),
      observer: this.#observer,
    });
  }

  #statusChanged(status: DriverStatus): void {
    this.#lead.statusChanged(status);
    if (status.ready) this.#activeSince = new Date();
    else this.#member?.barrier.dropAttempts(); // the next active node knows nothing of them
    this.#cluster?.statusChanged(status);
  }

  async #openBarrier(replica: Replica): Promise<Barrier> {
    const barrier = await Barrier.open({
      store: replica,
      seal: this.#seal,
      valuesWritten: () => replica.status().valuesWritten,
      now: Date.now,
      rotation: {
        enabled: true,
        maxOperations: this.config.barrier_rotation.max_operations,
        intervalMs: this.config.barrier_rotation.interval,
      },
    });
    this.#serving.follow(barrier);
    return barrier;
  }

  /** Opens a static seal. One that is static in the data or in the configuration only is told as an error: it would stay sealed for ever. */
  async #autoUnseal(): Promise<void> {
    const { barrier } = this.#requireMember();
    const isStatic = this.#seal.type === 'static' || barrier.sealStatus.type === 'static';
    if (!barrier.state.initialized || !isStatic) return;
    await barrier.autoUnseal();
    await this.#serving.loaded;
  }

  /** Something serves from now on, or nothing does any more. */
  #servingChanged(): void {
    if (this.#serving.service !== undefined) this.#activeSince = new Date();
    this.#noteFitness();
    this.#cluster?.sealChanged();
  }

  /**
   * A sealed node may not lead but to hand over. Exempt is one that does not know the cluster's keys yet, or is alone: it has to lead
   * to apply what its log holds. One whose records are known to be others than the cluster's never leads.
   */
  #noteFitness(): void {
    if (this.#storage === undefined || this.#member === undefined) return;
    const serves = this.#serving.service !== undefined || !this.#member.barrier.state.initialized || isAlone(this.#storage);
    const fit = serves && this.#cluster?.differs !== true;
    const low = this.#member.replica.status().diskLow;
    this.#storage.driver.setFitness(fit ? (low ? 'low' : 'fit') : 'sealed');
  }

  /** This node is no member any more: it serves nothing, and holds no key. */
  #endMembership(): void {
    this.#removed = true;
    this.#log.error(removedText);
    this.#member?.barrier.seal('this node was removed from its cluster');
  }

  /** Now and then: what did not succeed at once is tried again. */
  async #tick(): Promise<void> {
    if (this.#member === undefined) return this.#entrance.again();
    this.#noteFitness();
    for (const { learner, silentMs } of this.#storage?.driver.peers() ?? []) if (!learner) this.#observer.lastContact(silentMs);
    if (this.service !== undefined) await this.#snapshots?.finish().catch(() => undefined); // the next tick tries again
    const { barrier } = this.#member;
    const mayUnseal = !this.#removed && !this.#sealedByHand && this.#seal.type === 'static';
    if (barrier.state.initialized && barrier.state.sealed && mayUnseal) {
      await this.#autoUnseal().catch((error: Error) =>
        this.#log.warn({ reason: error.message }, 'the node could not unseal itself'),
      );
    }
  }

  async #keepUp(): Promise<void> {
    if (this.#atUpkeep) return; // a long round is not joined by another
    this.#atUpkeep = true;
    await this.upkeep().finally(() => {
      this.#atUpkeep = false;
    });
  }

  /** What the active node does from time to time; nothing while it is not active. */
  async upkeep(): Promise<void> {
    if (this.#serving.service === undefined || !this.active || this.#member === undefined) return;
    await this.#snapshots
      ?.upkeep()
      .catch((error: Error) => this.#log.warn({ reason: error.message }, 'what a restore left is cleared later'));
    await keepUp({ service: this.#serving.service, barrier: this.#member.barrier, log: this.#log, isActive: () => this.active });
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const removedText = 'this node was removed from its cluster: it can only join again with an empty data directory';

/** This node is all that its cluster has. */
function isAlone({ driver }: Storage): boolean {
  const { conf } = driver.consensus();
  const others = [...conf.voters, ...conf.votersOutgoing, ...conf.learners].filter((id) => id !== driver.status().nodeId);
  return others.length === 0 && conf.voters.length === 1;
}
