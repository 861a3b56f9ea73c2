import type { Barrier } from '@transitd/barrier';
import { type ClusterLevels, FeatureLevelControl, MemberEvents, RegisteredPeers } from '@transitd/cluster';
import { reasonOf, StartError } from '@transitd/process';
import { unreachedSecondaries } from '@transitd/replication';
import { UnsupportedLevel } from '@transitd/storage-fsm';
import { EtcdEngine } from './etcd/etcd-engine.ts';
import { type EtcdConfig, openEtcd } from './etcd/open-etcd.ts';
import { Leadership } from './leadership.ts';
import { BaseMember, clusterHostOf, logClockJumps, type MemberHost, type OpenedMember, openBarrier } from './member.ts';
import { MemberSeal } from './member-seal.ts';
import { ServiceLoader } from './service-loader.ts';
import { ServingRole } from './serving-role.ts';
import { Snapshots } from './snapshots/snapshots.ts';
import { newNodeId } from './storage/data-directory.ts';

interface OpenedEtcdMember extends OpenedMember<EtcdEngine> {
  readonly peers: RegisteredPeers;
}

/**
 * This node as a member of a cluster that keeps its records in etcd. It has another id after each start, and no disk of its own. Nobody
 * removes such a member, and its cluster replicates with no other one.
 */
export class EtcdMember extends BaseMember<EtcdEngine> {
  readonly kind = 'etcd';
  readonly removed = false;
  readonly cluster = undefined;
  readonly replication = undefined;
  readonly #registered: RegisteredPeers;
  /** This node creates the cluster: until its records are there, it is the active node although it has no keys. */
  #isFounding = false;

  constructor(host: MemberHost, opened: OpenedEtcdMember) {
    super(host, opened);
    this.#registered = opened.peers;
  }

  /** Begins to follow the active role. */
  start(): void {
    this.followBarrier(unreachedSecondaries(this.engine, this.barrier));
    for (const change of ['services', 'reopeningEnded'] as const) this.events.on(change, () => this.#updateFitness());
    this.events.on('status', ({ ready }) => {
      if (ready) this.featureLevel.leadershipBegins();
      else this.barrier.dropAttempts(); // the next active node does not know them
      void this.#registered.update(this.reporter);
    });
    this.engine.start();
  }

  /**
   * Runs `initialize` on this node as the active one of a cluster without records.
   * @throws BarrierError `already_initialized`; StoreError
   */
  async found<T>(initialize: (barrier: Barrier) => Promise<T>): Promise<T> {
    if (this.isInitialized) return initialize(this.barrier); // which refuses
    this.#isFounding = true;
    this.#updateFitness();
    try {
      await this.engine.leadsOr(this.barrier);
      return await initialize(this.barrier);
    } finally {
      this.#isFounding = false;
      this.#updateFitness();
    }
  }

  /** Called every second. */
  async tick(): Promise<void> {
    this.#updateFitness();
    await this.finishRestore();
  }

  /** Only a node with the keys of the cluster may be active. The cluster port follows the seal too. */
  #updateFitness(): void {
    this.engine.mayLead = this.#isFounding || this.role.isUnsealed;
    void this.#registered.update(this.reporter);
  }
}

/** Returns the feature level in etcd, and the levels of the registered nodes. */
const etcdLevels = (engine: EtcdEngine, peers: RegisteredPeers): ClusterLevels => ({
  replica: engine.replica,
  get level() {
    return engine.featureLevel;
  },
  get others() {
    return peers.levels;
  },
  undisturbed: (task) => task(), // a node that registers after the decision and does not support the level ends itself (decision 122)
});

/** Connects to etcd, reads the state, and opens this node over it, from the bottom up. @throws StartError, UnsupportedLevel */
export async function openEtcdMember(
  host: MemberHost,
  storage: EtcdConfig,
  resources: AsyncDisposableStack,
): Promise<EtcdMember> {
  const etcd = await openEtcd(storage);
  resources.defer(() => etcd.close());
  try {
    return await openOver(etcd, host, storage, resources);
  } catch (error) {
    if (error instanceof UnsupportedLevel) throw error;
    throw new StartError(`storage: etcd at ${storage.endpoints.join(', ')} cannot be used: ${reasonOf(error)}`);
  }
}

async function openOver(
  etcd: Awaited<ReturnType<typeof openEtcd>>,
  host: MemberHost,
  { prefix }: EtcdConfig,
  resources: AsyncDisposableStack,
): Promise<EtcdMember> {
  const { config, log, observer, directory, gateways } = host;
  const events = new MemberEvents();
  logClockJumps(log, events, 'a clock of this machine jumped');
  const engine = await EtcdEngine.open({
    ...{
      etcd,
      prefix,
      nodeId: newNodeId(),
      heartbeatMs: config.cluster_heartbeat_interval,
      log,
      observer,
      events,
      onFatal: host.onFatal,
    },
    onLease: (endMs) => gateways.lease(endMs),
  });
  resources.defer(() => engine.stop());
  gateways.follow(engine.replica, events);
  resources.defer(() => gateways.closed());
  const barrier = await openBarrier(host, engine.replica);
  const services = new ServiceLoader(host, events);
  const role = new ServingRole(engine, services, { verdict: 'same' }); // etcd compares the copies of the nodes itself
  const seal = new MemberSeal(host, { barrier, services, membership: { removed: false }, engine, events });
  const peers = new RegisteredPeers({ host: clusterHostOf(host, events), role, engine, barrier, registry: engine.registry });
  resources.defer(() => peers.close());
  resources.defer(() => barrier.close()); // before the port, which waits for its calls
  const leadership = new Leadership(host, events, peers.membershipList);
  const featureLevel = new FeatureLevelControl({ levels: etcdLevels(engine, peers), config, log });
  const snapshots = new Snapshots({
    ...{ engine: engine.snapshots, barrier, directory: directory.path, log },
    authority: { signingAuthority: async () => undefined, restoreAuthority: async () => undefined }, // the restored state has one
  });
  const member = new EtcdMember(host, {
    ...{ events, engine, barrier, services, role, seal, leadership, peers, featureLevel, snapshots, resources },
  });
  member.start();
  return member;
}
