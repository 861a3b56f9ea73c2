import { Barrier, type OnSealWritten } from '@transitd/barrier';
import type { ClusterHost, FeatureLevelControl, MemberEvents, Peers } from '@transitd/cluster';
import type { HealthAnswer, NodeStatus } from '@transitd/health';
import { type Logger, LogLimit } from '@transitd/process';
import type { Replica } from '@transitd/storage-fsm';
import type { SecondaryConfirmation } from '@transitd/transit-engine';
import type { EtcdEngine } from './etcd/etcd-engine.ts';
import type { MemberGateways } from './gateway-host.ts';
import type { Leadership } from './leadership.ts';
import type { MemberSeal } from './member-seal.ts';
import type { NodeHost } from './node-host.ts';
import { ReadEligibility } from './read-eligibility.ts';
import { ClusterReports } from './reports/cluster-reports.ts';
import { NodeReporter } from './reports/node-report.ts';
import type { ServiceLoader } from './service-loader.ts';
import type { ServingRole } from './serving-role.ts';
import type { Snapshots } from './snapshots/snapshots.ts';
import { type ClusterName, clusterNamed, healthNow, nodeStatus } from './status.ts';
import type { RaftEngine } from './storage/raft-engine.ts';
import { UsageCollector } from './usage/usage-collector.ts';

export interface MemberHost extends NodeHost {
  readonly gateways: MemberGateways;
  /** Aborted when the node stops; a member that is being opened then fails with `stopped`. */
  readonly stopping: AbortSignal;
}

export interface OpenedMember<E extends RaftEngine | EtcdEngine>
  extends Pick<
    BaseMember<E>,
    'engine' | 'barrier' | 'services' | 'role' | 'seal' | 'leadership' | 'peers' | 'featureLevel' | 'snapshots'
  > {
  readonly events: MemberEvents;
  /** Closes everything that was opened, in reverse order. */
  readonly resources: AsyncDisposableStack;
}

/** Returns the node as the rest of its cluster sees it. */
export const clusterHostOf = (
  { config, log, observer, directory, api, forwarded, onFatal }: MemberHost,
  events: MemberEvents,
): ClusterHost => ({ config, log, observer, directory: directory.path, api, events, forwarded, onFatal });

/**
 * Opens the barrier over the records of an engine, sealed.
 * @param witnessPath - see `BarrierOptions`; on Raft only
 */
export function openBarrier(
  { config, opened, log, clock }: Pick<MemberHost, 'config' | 'opened' | 'log' | 'clock'>,
  replica: Replica,
  witnessPath?: string,
): Promise<Barrier> {
  const { max_operations: maxOperations, interval: intervalMs } = config.barrier_rotation;
  const { seal } = opened;
  return Barrier.open({
    store: replica,
    seal,
    valuesWritten: () => replica.status().valuesWritten,
    clock,
    rotation: { enabled: true, maxOperations, intervalMs },
    onSealWritten: (change) => log.info({ seal: seal.type }, sealWritten[change]),
    ...(witnessPath !== undefined && { witnessPath }),
  });
}

/** In the log of the node that wrote the seal, whether a task of the active node or the unseal of the node led to it. */
const sealWritten: Readonly<Record<Parameters<OnSealWritten>[0], string>> = {
  rewrapped: 'wrapped the root key under the present seal key',
  migrated: 'migrated the seal',
};

/** Logs each clock jump, at most once a minute. @param message - what it means on this engine */
export function logClockJumps(log: Logger, events: MemberEvents, message: string): void {
  const limit = new LogLimit({ log });
  events.on('clockJump', ({ ms }) => limit.write('warn', 'clock jump', { jumpMs: Math.round(ms) }, message));
}

/** What a member is on every engine: its records, the barrier that encrypts them, and the services over it. */
export abstract class BaseMember<E extends RaftEngine | EtcdEngine> {
  readonly engine: E;
  readonly barrier: Barrier;
  readonly services: ServiceLoader;
  readonly role: ServingRole;
  readonly seal: MemberSeal;
  readonly leadership: Leadership;
  readonly peers: Peers;
  readonly featureLevel: FeatureLevelControl;
  /** Backups of the state. */
  readonly snapshots: Snapshots;
  /** Whether this node may respond to a request, and from which state. */
  readonly eligibility: ReadEligibility;
  /** The report of this node on itself. */
  readonly reporter: NodeReporter;
  /** Reports of all members, for the console and for auditors. */
  readonly reports: ClusterReports;
  /** The uses of keys on all nodes. */
  readonly usage: UsageCollector;
  protected readonly host: MemberHost;
  protected readonly events: MemberEvents;
  readonly #resources: AsyncDisposableStack;

  constructor(host: MemberHost, opened: OpenedMember<E>) {
    this.host = host;
    this.engine = opened.engine;
    this.barrier = opened.barrier;
    this.services = opened.services;
    this.role = opened.role;
    this.seal = opened.seal;
    this.leadership = opened.leadership;
    this.peers = opened.peers;
    this.featureLevel = opened.featureLevel;
    this.snapshots = opened.snapshots;
    this.eligibility = new ReadEligibility(host, opened);
    this.reporter = new NodeReporter(this, host);
    this.reports = new ClusterReports(this, host);
    this.usage = new UsageCollector(this, host);
    this.events = opened.events;
    this.events.on('configuration', () => this.usage.membersChanged());
    this.#resources = opened.resources;
  }

  /** Whether this node was removed from its cluster. */
  abstract readonly removed: boolean;

  get replica(): Replica {
    return this.engine.replica;
  }

  /** Whether the cluster has records. */
  get isInitialized(): boolean {
    return this.barrier.state.initialized;
  }

  /** Undefined until the cluster is initialized. */
  get clusterName(): ClusterName | undefined {
    return this.isInitialized ? clusterNamed(this.replica.status().clusterId) : undefined;
  }

  /** The status that health reports. */
  get status(): NodeStatus {
    return nodeStatus(this, this.host.config);
  }

  /** The answer to a health query without parameters. */
  get health(): HealthAnswer {
    return healthNow(this.status);
  }

  /**
   * Lets the parts of this member follow its barrier from now on: the seal first, so that the node is known to reopen when its services are
   * closed.
   * @param secondaries - confirm key material before it is used
   */
  protected followBarrier(secondaries: SecondaryConfirmation): void {
    const { barrier, eligibility, events } = this;
    this.seal.follow();
    this.services.follow(barrier, secondaries);
    this.host.gateways.serve({ barrier, eligibility, events });
  }

  /** Completes a restore that sealed this node; the next call tries again if it fails. */
  protected async finishRestore(): Promise<void> {
    if (this.role.isUnsealed) await this.snapshots.finish().catch(() => undefined);
  }

  /** Seals, finishes the writes that were accepted, and closes. @throws StorageFailed */
  async close(): Promise<void> {
    this.services.close();
    await this.#resources.disposeAsync();
  }
}
