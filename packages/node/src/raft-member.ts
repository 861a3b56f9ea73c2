import type { Barrier } from '@transitd/barrier';
import {
  authorityPath,
  Cluster,
  FeatureLevelControl,
  MemberEvents,
  RaftConnections,
  RaftLevels,
  readAuthority,
  StateComparison,
} from '@transitd/cluster';
import type { Logger } from '@transitd/process';
import {
  acknowledgePath,
  ClusterReplication,
  ReplicationRole,
  successionKeyPath,
  unreachedSecondaries,
} from '@transitd/replication';
import { isCapped, reserveIn, supportedLevels } from '@transitd/storage-fsm';
import { isAlone, updateFitness } from './fitness.ts';
import { Leadership } from './leadership.ts';
import { BaseMember, clusterHostOf, logClockJumps, type MemberHost, type OpenedMember, openBarrier } from './member.ts';
import { MemberSeal, removedText } from './member-seal.ts';
import { NoPeers } from './no-peers.ts';
import { ServiceLoader } from './service-loader.ts';
import { ServingRole } from './serving-role.ts';
import { raftSnapshots } from './snapshots/raft-snapshots.ts';
import { Snapshots } from './snapshots/snapshots.ts';
import type { RaftEngine } from './storage/raft-engine.ts';

/** The ties of a member to the other members of its cluster and to other clusters. */
interface Ties {
  readonly cluster: Cluster;
  readonly replication: ClusterReplication;
}

interface OpenedRaftMember extends OpenedMember<RaftEngine> {
  /** Undefined on a node without `cluster_addr`, which no other node can reach. */
  readonly ties: Ties | undefined;
  readonly membership: { readonly removed: boolean };
}

/** This node as a member of a cluster whose consensus is Raft. */
export class RaftMember extends BaseMember<RaftEngine> {
  readonly kind = 'raft';
  readonly #ties: Ties | undefined;
  readonly #membership: { readonly removed: boolean };

  constructor(host: MemberHost, opened: OpenedRaftMember) {
    super(host, opened);
    this.#ties = opened.ties;
    this.#membership = opened.membership;
  }

  get removed(): boolean {
    return this.#membership.removed;
  }

  /** The other members; undefined on a node without `cluster_addr`. */
  get cluster(): Cluster | undefined {
    return this.#ties?.cluster;
  }

  /** Replication with another cluster; undefined on a node without `cluster_addr`. */
  get replication(): ClusterReplication | undefined {
    return this.#ties?.replication;
  }

  /** Starts consensus, unless it has started already, and opens the cluster port. @throws StartError */
  async start({ alone }: { readonly alone: boolean }): Promise<void> {
    this.followBarrier(this.#ties?.replication.material ?? unreachedSecondaries(this.engine, this.barrier));
    updateFitness(this);
    if (!alone) this.engine.driver.start();
    await this.#ties?.cluster.start(this.reporter);
  }

  /**
   * Runs `initialize` on this node as the active one of a cluster without records.
   * @throws BarrierError `already_initialized`; StoreError
   */
  async found<T>(initialize: (barrier: Barrier) => Promise<T>): Promise<T> {
    await this.#raiseWhenNew();
    return initialize(this.barrier);
  }

  /** Called every second. */
  async tick(): Promise<void> {
    updateFitness(this);
    this.#ties?.replication.tick();
    for (const { learner, silentMs } of this.engine.driver.peers()) if (!learner) this.host.observer.lastContact(silentMs);
    await this.finishRestore();
  }

  /**
   * Raises the feature level of a cluster that is about to be initialized to the newest one. A caller without a token may ask any node to
   * initialize, so this function changes nothing in an initialized cluster, nor in one with other nodes, which may not support that level.
   */
  async #raiseWhenNew(): Promise<void> {
    const { driver, featureLevel, replica } = this.engine;
    if (featureLevel >= supportedLevels.newest || this.isInitialized) return;
    if (!isAlone(driver.consensus().conf, driver.status().nodeId)) return;
    await replica.commit({ raise: supportedLevels.newest });
  }
}

/**
 * Opens the node in the data directory as a member, from the bottom up: each object gets finished ones.
 * @param resources - gets what was opened; the caller closes it after a failure, and the member otherwise
 * @throws StartError, StorageDamaged, StorageFailed, LogDamage; StoreError `stopped`
 */
export async function openRaftMember(host: MemberHost, resources: AsyncDisposableStack): Promise<RaftMember> {
  const { config, log, observer, directory, clock, gateways, stopping } = host;
  const events = new MemberEvents();

  // The other members, as far as consensus needs them.
  const clusterHost = clusterHostOf(host, events);
  const connections = config.cluster_addr === undefined ? undefined : await RaftConnections.open(clusterHost);
  const connected = resources.use(new AsyncDisposableStack()); // closed after the engine, which finishes accepted writes over it
  if (connections !== undefined) connected.defer(() => connections.close());
  const leadership = new Leadership(host, events, connections?.membershipList ?? noNames);
  logClockJumps(
    log,
    events,
    'a clock of this machine jumped against the monotonic clock: the machine was suspended or its clock was set. ' +
      'Earlier leases and heartbeats are not used',
  );
  events.on('removed', () => log.error(removedText));

  // Consensus and records.
  const engine = await directory.openStorage({
    ...{ raft: config.raft, observer, events },
    onFatal: connections === undefined ? host.onFatal : (error) => connections.storageFailed(error),
    onLease: (endMs) => gateways.lease(endMs),
    ...(connections && { membership: connections.ports }),
  });
  resources.defer(() => engine.stop());
  warnOfReserve(log, config.raft.disk_reserve, engine.diskBytes);
  stopping.throwIfAborted();
  const stop = (): void => void engine.stop().catch(() => undefined); // ends the wait below
  stopping.addEventListener('abort', stop);
  resources.defer(() => stopping.removeEventListener('abort', stop));
  gateways.follow(engine.replica, events);
  resources.defer(() => gateways.closed());
  // The log of a sole member may have acknowledged entries that are not applied yet. It must become leader and apply them before its
  // barrier is opened. In a larger cluster, a member must not wait for a leader.
  const alone = isAlone(engine.driver.consensus().conf, engine.driver.status().nodeId);
  if (alone) {
    engine.driver.start();
    await engine.leads;
  }

  // The barrier, sealed, and whether this node may lead. The authority is a local record of each cluster that can follow another one.
  const barrier = await openBarrier(host, engine.replica, authorityPath);
  resources.defer(() => barrier.close());
  stopping.throwIfAborted();
  const membership = connections ?? { removed: false };
  const comparison = new StateComparison(engine, { log, events });
  const services = new ServiceLoader(host, events);
  const role = new ServingRole(engine, services, comparison);
  const seal = new MemberSeal(host, { barrier, services, membership, engine, events });
  events.on('status', ({ ready }) => {
    if (!ready) barrier.dropAttempts(); // the next active node does not know them
  });
  for (const change of ['services', 'reopeningEnded', 'digestDiffers', 'configuration'] as const)
    events.on(change, () => updateFitness({ engine, barrier, role, seal }));
  events.on('removed', () => barrier.seal('this node was removed from its cluster')); // it has no key in memory then

  // The other members and clusters.
  const cluster = connections && new Cluster({ host: clusterHost, connections, storage: engine, barrier, role, comparison });
  if (cluster !== undefined) connected.defer(() => cluster.close());
  const snapshots = new Snapshots({
    engine: raftSnapshots(engine, [acknowledgePath, successionKeyPath]),
    ...{ barrier, log, directory: directory.path },
    authority: cluster ?? { signingAuthority: () => readAuthority(barrier.store), restoreAuthority: async () => undefined },
  });
  const ties = cluster && {
    cluster,
    replication: new ClusterReplication(new ReplicationRole(engine, role), {
      ...{ storage: engine, barrier, cluster, snapshots, clock, log, events, directory: directory.path, node: config.node_id },
      lateRequestsMax: Math.ceil(config.limits.changes / 4), // each holds one of these places
    }),
  };
  if (ties !== undefined) resources.defer(() => ties.replication.close());
  if (ties !== undefined) engine.useFence(ties.replication.fence);
  const featureLevel = cluster?.featureLevel ?? new FeatureLevelControl({ levels: new RaftLevels(engine), config, log });

  const member = new RaftMember(host, {
    ...{ events, engine, barrier, services, role, seal, leadership, snapshots, featureLevel, ties, membership },
    peers: cluster ?? new NoPeers(config.cluster_heartbeat_interval, services),
    resources,
  });
  await member.start({ alone });
  return member;
}

function warnOfReserve(log: Logger, configured: number, diskBytes: number | undefined): void {
  if (diskBytes === undefined || !isCapped(diskBytes, configured)) return;
  const reserve = Math.floor(reserveIn(diskBytes, { reserveBytes: configured }));
  log.warn({ configured, reserve }, 'raft.disk_reserve is more than 5 % of the volume, of which this node reserves no more');
}

const noNames = { member: () => undefined };
