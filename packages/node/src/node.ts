import { rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { initialAccess, type MethodType } from '@transitd/access';
import { type AuditWriter, initialAuditKey, noAudit } from '@transitd/audit';
import {
  BarrierError,
  countsFor,
  type InitializeRequest,
  type InitialShares,
  idOf,
  type ProviderHealth,
  type SealConfig,
  type SealStatus,
} from '@transitd/barrier';
import { ClusterError, clusterListenAddress, ForwardedRequests, type JoinDesk } from '@transitd/cluster';
import { addressText, type Config } from '@transitd/configuration';
import type { HealthAnswer, NodeStatus } from '@transitd/health';
import { type Logger, type NodeObserver, noObserver, StartError, systemClock, version } from '@transitd/process';
import { type OpenedSeal, openSeal } from '@transitd/seals';
import { StoreError } from '@transitd/storage-fsm';
import { ApiAddress } from './api-address.ts';
import type { ClockSample } from './clock/clock-trust.ts';
import { NodeClock } from './clock/node-clock.ts';
import { GatewayHost, noGateways } from './gateway-host.ts';
import { AddressRate } from './join/address-rate.ts';
import type { JoinTarget } from './join/joining.ts';
import { ShareRetention, sharesRetained } from './join/share-retention.ts';
import { JoinAttempts } from './join-attempts.ts';
import { NodeMaintenance } from './maintenance.ts';
import { type MemberSeal, providerOf, removedText } from './member-seal.ts';
import { initialMounts } from './mounts/mounts.ts';
import { type Member, Phases } from './phases.ts';
import { type Eligibility, noEligibility } from './read-eligibility.ts';
import { DataDisk } from './reports/data-disk.ts';
import type { WorkFigures } from './reports/node-report.ts';
import { gatewayCount, type Services } from './services.ts';
import { transfersFolder } from './snapshots/snapshots.ts';
import { healthNow, sealedStatus, unsentHeartbeats } from './status.ts';
import { DataDirectory } from './storage/data-directory.ts';
import { UsageLedger } from './usage/usage-ledger.ts';
import { unknownProcess } from './usage/usage-wire.ts';

export interface NodeOptions {
  readonly config: Config;
  readonly log: Logger;
  /** The types of auth methods; none by default. */
  readonly authMethods?: readonly MethodType[];
  /** Records what the node does without a request; nothing does by default. */
  readonly audit?: AuditWriter;
  readonly onFatal: (error: Error) => void;
  readonly observer?: NodeObserver;
  /** Returns the work of this node, for its report on itself. */
  readonly work?: () => Promise<WorkFigures>;
  /** The clocks of the machine, unless replaced. */
  readonly clocks?: () => ClockSample;
}

interface Initialized extends InitialShares {
  readonly rootToken: string;
}

/**
 * One node: in no cluster, joining one, or a member, which may be sealed, standby or active. The packages above it ask this class what the
 * node can do now, and keep no copy of the answer.
 */
export class Node {
  readonly config: Config;
  readonly maintenance: NodeMaintenance;
  /** The node's time of day. */
  readonly clock: NodeClock;
  /** The disk of `data_dir`. */
  readonly disk: DataDisk;
  /** The main thread's end of the gateway threads, which may be none. */
  readonly gateways: GatewayHost;
  /** The uses of keys on this node. */
  readonly usage: UsageLedger;
  readonly #seal: OpenedSeal;
  readonly #observer: NodeObserver;
  readonly #directory: DataDirectory;
  readonly #api: ApiAddress;
  readonly #forwarded = new ForwardedRequests();
  readonly #retention = new ShareRetention(systemClock);
  readonly #phases: Phases;
  readonly #joinAttempts: JoinAttempts;
  readonly #joinRate = new AddressRate(
    { rate: 5, intervalS: 50, blockIntervalS: 0 },
    { refusal: 'too many join requests from this address', clock: systemClock },
  );
  #stopping: Promise<void> | undefined;

  private constructor(
    { config, log, authMethods = [], audit = noAudit, onFatal, observer = noObserver, work, clocks }: NodeOptions,
    opened: OpenedSeal,
    directory: DataDirectory,
    lastUsage: string,
  ) {
    this.config = config;
    this.clock = new NodeClock(log, clocks);
    this.disk = new DataDisk(config.data_dir);
    this.gateways = new GatewayHost(config, this.clock);
    this.usage = new UsageLedger(this.clock, lastUsage);
    this.#seal = opened;
    this.#observer = observer;
    this.#directory = directory;
    this.#api = new ApiAddress(config.api_addr);
    const host = {
      ...{ config, opened, log, observer, audit, directory, onFatal, clock: this.clock, disk: this.disk, api: this.#api },
      ...{ authMethods, forwarded: this.#forwarded, retention: this.#retention, usage: this.usage },
      gateways: gatewayCount(config) === 0 ? noGateways : this.gateways,
      ...(work && { work }),
    };
    const phases = new Phases(host);
    this.#phases = phases;
    this.#joinAttempts = new JoinAttempts(host, phases);
    this.maintenance = new NodeMaintenance(host, { phases, joinAttempts: this.#joinAttempts, node: this });
  }

  /**
   * Locks `data_dir` and opens the node in it, if there is one; opens a static seal at once, and that of a provider in the background.
   * @throws StartError, StorageDamaged, StorageInUse, StorageFailed
   */
  static async open(options: NodeOptions): Promise<Node> {
    const { config, log, observer = noObserver } = options;
    const opened = openSeal(config, { log, observer, clusterId: () => node.member?.clusterName?.id });
    const directory = await DataDirectory.open(config.data_dir);
    const node = new Node(options, opened, directory, await directory.notedUsage().catch(() => unknownProcess));
    try {
      await rm(transfersFolder(directory.path), { recursive: true, force: true });
      const holdsNode = await directory.holdsNode();
      if (holdsNode && config.storage.type === 'etcd')
        throw new StartError('storage.type is etcd, but data_dir holds a node with records of its own: use another data_dir');
      if (holdsNode || config.storage.type === 'etcd') {
        const member = await node.#phases.open();
        if (!member.removed) await member.seal.unsealAtStart();
      }
      node.maintenance.start();
      return node;
    } catch (error) {
      await node.stop().catch(() => undefined); // the first error is the cause
      throw error instanceof BarrierError ? new StartError(`seal: ${error.message}`) : error;
    }
  }

  /** Undefined until this node is a member of a cluster. */
  get member(): Member | undefined {
    return this.#phases.member;
  }

  /** @throws BarrierError `not_initialized` until this node is a member */
  requireMember(): Member {
    const { member } = this;
    if (member === undefined) throw new BarrierError('not_initialized', 'transitd is not initialized');
    return member;
  }

  /** Whether this node may respond to a request, and from which state. */
  get eligibility(): Eligibility {
    return this.member?.eligibility ?? noEligibility;
  }

  /** Whether this node belongs to an initialized cluster, or is about to join one. */
  get initialized(): boolean {
    const { present } = this.#phases;
    if (present.kind === 'member') return present.member.isInitialized;
    return present.kind === 'joining' && present.joining.sealStatus !== undefined;
  }

  get removed(): boolean {
    return this.member?.removed ?? false;
  }

  /** Undefined while the node is uninitialized or sealed, and while its services are loading. */
  get services(): Services | undefined {
    return this.member?.services.services;
  }

  /** Whether this node leads, has applied an entry of its term, and its services are loaded. */
  get active(): boolean {
    return this.member?.role.isActive ?? false;
  }

  /** When this node became the active node; undefined on any other node. */
  get activeSince(): Date | undefined {
    return this.active ? this.member?.leadership.activeSince : undefined;
  }

  /** The address for clients and redirects: the configured one, else that of the first listener. */
  get apiAddress(): string {
    return this.#api.url;
  }

  /** Sets the listener for requests that other nodes forward to this one. */
  serveForwarded(listener: RequestListener): void {
    this.#forwarded.serve(listener);
  }

  /** Records that a listener accepts connections at this address. */
  listeningAt(address: string): void {
    this.#api.listeningAt(address);
  }

  /**
   * Where the cluster port listens, and in PEM its certificate and that of the cluster's authority; undefined while the node has no
   * certificate.
   */
  get clusterPort(): { readonly address: string; readonly certificate: string; readonly authority: string } | undefined {
    const identity = this.member?.peers.identity;
    if (identity === undefined) return undefined;
    const { certificate, authority } = identity;
    return { address: addressText(clusterListenAddress(this.config)), certificate, authority };
  }

  /** The status that health reports. */
  get status(): NodeStatus {
    if (this.member !== undefined) return this.member.status;
    if (!this.initialized) return { state: 'uninitialized', version };
    const heartbeats = unsentHeartbeats(this.config.cluster_heartbeat_interval, 0);
    return sealedStatus({ version }, { heartbeats, health: this.sealHealth });
  }

  /** The answer to a health query without parameters. */
  get health(): HealthAnswer {
    return healthNow(this.status);
  }

  get sealStatus(): SealStatus {
    const { present } = this.#phases;
    if (present.kind === 'member') return present.member.seal.status;
    return (present.kind === 'joining' ? present.joining.sealStatus : undefined) ?? sealWithoutRecords(this.#seal.seal);
  }

  /** The health of the present seal's provider; undefined if the seal has none. */
  get sealHealth(): ProviderHealth | undefined {
    return this.member === undefined
      ? providerOf(this.#seal.providers, this.sealStatus)?.health
      : this.member.seal.providerHealth;
  }

  /**
   * Creates a cluster with this node as its only member; one call at a time. All first records, the root token included, are one
   * transaction: after a crash the node is either uninitialized or complete.
   * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
   */
  initialize(request: InitializeRequest, rootTokenId?: string): Promise<Initialized> {
    return this.#joinAttempts.exclusively('initialized', async () => {
      // Before anything is created: a refused request leaves no cluster.
      if (this.member === undefined) countsFor(this.#seal.seal.type, request);
      const member = await this.#phases.found();
      return member.found(async (barrier) => {
        const { rootToken, writes } = initialAccess({
          now: Date.now(),
          ...(rootTokenId === undefined ? {} : { rootToken: rootTokenId }),
        });
        const records = [initialMounts(this.config.ciphertext_prefix), initialAuditKey(), ...writes];
        const shares = await barrier.initialize(request, records);
        await member.services.loaded;
        return { ...shares, rootToken };
      });
    });
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
    if (this.removed) throw new ClusterError('node_removed', removedText);
    if (this.member !== undefined) return { joined: true };
    this.#joinRate.admit(from);
    if (this.sealStatus.progress > 0) this.#retention.admitDiscard(from);
    return this.#joinAttempts.join(request);
  }

  /**
   * Discards the shares given so far, unless the newest of them is too recent. Recent shares are protected because the caller needs no
   * token.
   * @param from - address of the caller
   * @returns the status, and in `ignored` why the shares were kept
   * @throws BarrierError `unsealed`; RateLimited
   */
  resetUnseal(from: string): { readonly status: SealStatus; readonly ignored?: string } {
    if (this.sealStatus.progress > 0) {
      if (this.#retention.remainingMs > 0) return { status: this.sealStatus, ignored: sharesRetained };
      this.#retention.admitDiscard(from);
    }
    const { present } = this.#phases;
    if (present.kind === 'joining') present.joining.reset();
    if (present.kind === 'member') return { status: present.member.barrier.resetUnseal() };
    return { status: this.sealStatus };
  }

  /**
   * Accepts a share of this node's seal, or of that of the cluster which it joins; with the last one it resolves when the services are
   * loaded.
   * @throws BarrierError, ClusterError, StoreError
   */
  async unseal(share: Uint8Array): Promise<SealStatus> {
    if (this.member === undefined && (await this.#joinAttempts.addShare(share))) {
      this.#retention.shareAccepted();
      return this.sealStatus;
    }
    return this.requireMember().seal.unseal(share);
  }

  /** @see MemberSeal.migrate @throws BarrierError, ProviderError, StoreError */
  migrateSeal(share: Uint8Array): ReturnType<MemberSeal['migrate']> {
    if (this.member === undefined)
      throw new BarrierError(
        'seal_mismatch',
        'this node has not joined yet, so it has no seal to migrate: give the share without migrate',
      );
    return this.member.seal.migrate(share);
  }

  /** Drops every key; the active node transfers its leadership first. */
  async seal(): Promise<void> {
    const { seal, engine } = this.requireMember();
    seal.keepSealed();
    await engine.transferLeadership();
    seal.seal();
    await this.gateways.sealed;
  }

  /** Admits nodes to the cluster. @throws StoreError `not_leader` unless this node is the active one */
  get joinDesk(): JoinDesk {
    const desk = this.active ? this.member?.cluster?.joinDesk : undefined;
    if (desk === undefined) throw new StoreError('not_leader', 'this node is not the active one, or has no cluster_addr');
    return desk;
  }

  /** Transfers the leadership to another node, if one can take it; resolves when that succeeded or failed. */
  async transferLeadership(): Promise<void> {
    await this.member?.engine.transferLeadership();
  }

  /** Transfers the leadership at the request of an operator. */
  async stepDown(): Promise<void> {
    const startMs = performance.now();
    await this.transferLeadership();
    this.#observer.steppedDown(performance.now() - startMs);
  }

  /** Ends the streams of reports, so that no reader delays a stop. */
  closeStreams(): void {
    this.member?.reports.streams.close();
  }

  /** Seals, finishes the writes that were accepted, and unlocks the data directory. An initialization in progress fails with `stopped`. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.maintenance.stop();
    this.#joinAttempts.close();
    this.usage.end();
    await this.member?.usage.handOver();
    await this.#phases.close();
    await this.#joinAttempts.ended();
    // If the note fails, the next process knows that uses may be missing.
    if (this.member !== undefined) await this.#directory.noteUsage(this.usage.endsAs).catch(() => undefined);
    await this.#directory.close();
  }
}

/** The seal of a node that has no records. */
const sealWithoutRecords = (seal: SealConfig): SealStatus => ({
  ...idOf(seal),
  initialized: false,
  sealed: true,
  t: 0,
  n: 0,
  progress: 0,
  nonce: '',
  recoverySeal: seal.type !== 'shamir',
  migration: false,
});
