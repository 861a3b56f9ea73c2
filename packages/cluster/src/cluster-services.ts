import { randomBytes } from 'node:crypto';
import type { DriverStatus, LogIndex, NodeId } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { clusterCalls } from './calls.ts';
import { ClusterMaintenance } from './cluster-maintenance.ts';
import type { ClusterPort } from './cluster-port.ts';
import { HeartbeatExchange } from './heartbeat-exchange.ts';
import { admit } from './join/admission.ts';
import { JoinDesk } from './join/join-desk.ts';
import { AuthorityRotation } from './maintenance/authority-rotation.ts';
import { Autopilot } from './maintenance/autopilot.ts';
import { DigestCheck } from './maintenance/digest-check.ts';
import { FasterLeaderTransfer } from './maintenance/faster-leader-transfer.ts';
import { FeatureLevelControl } from './maintenance/feature-level-control.ts';
import { authorityOf, listCertificate } from './maintenance/member-entries.ts';
import { MemberOperations } from './maintenance/member-operations.ts';
import { raftLevels } from './maintenance/raft-levels.ts';
import { Renewal } from './maintenance/renewal.ts';
import { ConfigurationChanges } from './membership/configuration-changes.ts';
import { announcedLevels } from './membership/member-levels.ts';
import type { Member } from './membership/membership.ts';
import type { MembershipList } from './membership/membership-list.ts';
import { MembershipListSync } from './membership/membership-list-sync.ts';
import type { ClusterHost, LocalNode } from './ports/cluster-host.ts';
import { AppliedIndex } from './standbys/applied-index.ts';
import { Canary } from './standbys/canary.ts';
import type { Heartbeats } from './standbys/heartbeats.ts';
import { lowDisksThatBlock } from './standbys/low-disks.ts';
import { reachedState } from './standbys/reached-state.ts';
import type { Standbys } from './standbys/standbys.ts';
import { StateComparison } from './standbys/state-comparison.ts';
import type { ClusterClient } from './transport/cluster-client.ts';
import { Forwarder } from './transport/forwarder.ts';

export interface ClusterServicesParts {
  readonly host: ClusterHost;
  readonly local: LocalNode;
  readonly membershipList: MembershipList;
  readonly heartbeats: Heartbeats;
  readonly standbys: Standbys;
  readonly client: ClusterClient;
  readonly port: ClusterPort;
  readonly pause: (ms: number) => Promise<void>;
  readonly isRemoved: () => boolean;
  /** This node was removed. @param confIndex - index of the configuration in force that this node knows */
  readonly onRemoved: (confIndex: LogIndex) => void;
  /** The members known to this node may have changed. */
  readonly onMembers: () => void;
  /** Members that this node has no Raft connection to. */
  readonly unconnected: () => readonly NodeId[];
}

const maintenanceIntervalMs = 5000;

/** The cluster services of a node whose log is open: heartbeats, forwarding, joins, membership changes and maintenance. */
export class ClusterServices {
  /** Changes of the Raft configuration; they succeed only on the leader. */
  readonly changes: ConfigurationChanges;
  readonly operator: MemberOperations;
  readonly autopilot: Autopilot;
  readonly joinDesk: JoinDesk;
  readonly forwarder: Forwarder;
  readonly stateComparison: StateComparison;
  readonly canary: Canary;
  readonly rotation: AuthorityRotation;
  readonly featureLevel: FeatureLevelControl;
  readonly maintenance: ClusterMaintenance;
  readonly lists: MembershipListSync;
  readonly #parts: ClusterServicesParts;
  readonly #applied: AppliedIndex;
  readonly #heartbeatExchange: HeartbeatExchange;
  readonly #digestCheck: DigestCheck;
  readonly #fasterLeader: FasterLeaderTransfer;
  #timer: NodeJS.Timeout | undefined;
  #isLeading = false;

  constructor(parts: ClusterServicesParts) {
    const { host, local, membershipList, standbys, client, port } = parts;
    const { storage, barrier, clusterId } = local;
    const { config, log } = host;
    this.#parts = parts;
    this.changes = new ConfigurationChanges(storage.driver, parts.pause);
    this.#applied = new AppliedIndex(storage.replica);
    this.canary = new Canary(barrier.store);
    this.#digestCheck = new DigestCheck(storage.machine, log);
    this.#fasterLeader = new FasterLeaderTransfer({
      driver: storage.driver,
      membershipList,
      standbys,
      log,
      heartbeatIntervalMs: config.cluster_heartbeat_interval,
    });
    this.operator = new MemberOperations({
      driver: storage.driver,
      changes: this.changes,
      standbys,
      unconnected: parts.unconnected,
      onIsolated: (voters) =>
        log.warn(
          { voters },
          'a voter that cannot be reached may know only nodes that have left: when it returns, it needs the signed membership list to rejoin. Remove it if it does not return',
        ),
    });
    this.autopilot = new Autopilot({ storage, membershipList, store: barrier.store, operator: this.operator, log });
    this.rotation = new AuthorityRotation({
      driver: storage.driver,
      changes: this.changes,
      store: barrier.store,
      clusterId,
      report: (id) => standbys.report(id),
      log,
    });
    this.featureLevel = new FeatureLevelControl({
      levels: raftLevels({ storage, changes: this.changes, announced: (id) => announcedLevels(standbys.report(id)) }),
      self: config.node_id,
      raiseAfterMs: config.feature_level_raise_after,
      nowMs: () => performance.now(),
      log,
    });
    this.lists = new MembershipListSync({
      directory: host.directory,
      clusterId,
      membershipList,
      log,
      onMembers: parts.onMembers,
      onConflict: () => host.observer.membershipConflict(),
    });
    this.maintenance = new ClusterMaintenance({
      ...parts,
      lists: this.lists,
      changes: this.changes,
      autopilot: this.autopilot,
      operator: this.operator,
      canary: this.canary,
      rotation: this.rotation,
      renewal: new Renewal({
        client,
        identity: () => membershipList.identity,
        authorities: () => membershipList.authorities,
        authority: () => membershipList.committedAuthority,
        leader: () => this.#leader()?.id,
        setIdentity: (identity) => port.useIdentity(identity),
        now: Date.now,
      }),
      activeMember: () => this.activeMember,
    });
    this.joinDesk = this.#makeJoinDesk();
    this.forwarder = new Forwarder({
      client,
      leader: () => this.#leader(),
      reached: async (index, withinMs) => (await reachedState(index, withinMs, storage)) === 'reached',
      self: config.node_id,
    });
    this.stateComparison = new StateComparison({
      appliedIndex: () => this.#applied.index,
      digestAt: (index) => storage.machine.digestAt(index),
      onDigestMismatch: (index) => {
        log.error(
          { index },
          "state digest mismatch: this node's records differ from the active node's at this index, so it serves nothing. Replace it, or restart it to compare again",
        );
        host.onDigestMismatch();
        void this.#digestCheck.run();
      },
    });
    this.#heartbeatExchange = new HeartbeatExchange({
      ...parts,
      lists: this.lists,
      stateComparison: this.stateComparison,
      appliedIndex: () => this.#applied.index,
      onRemoved: () => this.removedByNotice(),
    });
  }

  /** Returns the other node that this node believes to be active; undefined if none is known or this node itself is active. */
  get activeMember(): Member | undefined {
    const leader = this.#leader();
    return leader && this.#parts.membershipList.member(leader.id);
  }

  /** Names of voters whose disks are below their reserve, if the other voters are no quorum. Empty on every node except the leader. */
  get lowDisks(): readonly string[] {
    const { local, standbys, membershipList } = this.#parts;
    const { nodeId, storage } = local;
    const { role, conf } = storage.driver.consensus();
    if (role !== 'leader') return [];
    const isLow = (id: NodeId): boolean => (id === nodeId ? storage.diskLow() : standbys.report(id)?.diskLow === true);
    return lowDisksThatBlock(conf, isLow).map((id) => membershipList.member(id)?.name ?? `node ${id}`);
  }

  /** @throws StartError when the cluster port cannot be opened */
  async start(): Promise<void> {
    await this.lists.open();
    this.#parts.onMembers();
    this.statusChanged(this.#parts.local.storage.driver.status()); // in a cluster of one, this node is the leader already
    await this.#parts.port.serve(this.#calls());
    if (this.#parts.isRemoved()) return;
    this.#heartbeatExchange.start();
    this.#timer = setInterval(() => {
      if (this.#parts.host.isActive()) this.#fasterLeader.transferIfDue();
      void this.maintenance.round();
    }, maintenanceIntervalMs);
  }

  /** The role, term, leader or readiness of this node has changed. */
  statusChanged({ ready, leader, term }: DriverStatus): void {
    const { standbys, membershipList, heartbeats, local } = this.#parts;
    this.forwarder.leaderChanged();
    if (leader !== 0 && leader !== local.nodeId) {
      standbys.leaderFound(leader, term);
      heartbeats.leaderFound(term, performance.now());
    }
    if (ready && !this.#isLeading) {
      standbys.termBegins(
        () => membershipList.possiblyServing.filter((id) => id !== local.nodeId),
        local.storage.driver.consensus().termBefore ?? term,
      );
      this.autopilot.leadershipBegins();
      this.#fasterLeader.leadershipBegins();
      this.featureLevel.leadershipBegins();
      void this.maintenance.round();
    }
    if (!ready) this.joinDesk.clear();
    // Until now this node was the active node itself: its contact as a standby begins now.
    if (this.#isLeading && !ready) heartbeats.restart(performance.now());
    this.#isLeading = ready;
    this.#heartbeatExchange.sendNow();
  }

  /** The newest committed configuration may have changed: the active node signs the new membership list. */
  configurationChanged(): void {
    void this.maintenance.signList();
  }

  /** This node was sealed or unsealed. */
  sealChanged(): void {
    this.joinDesk.clear();
    this.#heartbeatExchange.sendNow();
    void this.maintenance.round();
  }

  /** A member reported that this node was removed. Ids are never reused, so the report is valid whatever this node's log says. */
  removedByNotice(): void {
    this.#parts.onRemoved(this.#parts.local.storage.driver.consensus().confIndex);
  }

  /** This node was removed from the cluster. */
  removed(): void {
    this.#heartbeatExchange.stop();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#heartbeatExchange.stop();
    this.canary.close();
  }

  /** Whether this node knows no leader and is not the leader itself. */
  get isLeaderless(): boolean {
    return this.#parts.local.storage.driver.status().leader === 0;
  }

  #leader() {
    const { nodeId, storage } = this.#parts.local;
    const { leader: id, term } = storage.driver.status();
    return id === 0 || id === nodeId ? undefined : { id, term, isSilent: this.#parts.heartbeats.isSilent(performance.now()) };
  }

  #makeJoinDesk(): JoinDesk {
    const { storage, barrier, nodeId, clusterId } = this.#parts.local;
    const { membershipList } = this.#parts;
    return new JoinDesk({
      wrap: (exchanged) => barrier.wrapForJoin(exchanged),
      cluster: async () => ({
        id: clusterId,
        authority: (await authorityOf(barrier.store, clusterId, membershipList.committedAuthority)).certificate,
      }),
      admit: async (joiner) => {
        await this.maintenance.updateOwnEntry(); // the joiner admits only the members named at its join: this node must be one of them
        return admit(
          {
            store: barrier.store,
            changes: this.changes,
            clusterId,
            current: membershipList.committedAuthority,
            self: nodeId,
            peers: () => storage.driver.peers(),
            level: () => storage.machine.featureLevel,
          },
          joiner,
        );
      },
      nowMs: () => performance.now(),
      randomBytes,
    });
  }

  #calls(): ReturnType<typeof clusterCalls> {
    const { host, local, membershipList, standbys, isRemoved } = this.#parts;
    const { storage, barrier, clusterId } = local;
    return clusterCalls({
      storage,
      applied: this.#applied,
      standbys,
      isActive: host.isActive,
      intervalMs: host.config.cluster_heartbeat_interval,
      committed: () => (isRemoved() ? undefined : membershipList.committed),
      lists: this.lists,
      isLeaderless: () => this.isLeaderless,
      renewal: {
        clusterId,
        authority: () => {
          if (!host.isActive()) throw new StoreError('not_leader', 'this node is not the active one');
          return authorityOf(barrier.store, clusterId, membershipList.committedAuthority);
        },
        list: (node, fingerprint, authority) => listCertificate(this.changes, node, { fingerprint, authority }),
        now: () => new Date(),
      },
      keepAuthority: (authority) => this.maintenance.keepAuthority(authority),
      report: host.report,
      onDigestMismatch: () => void this.#digestCheck.run(),
    });
  }
}
