import type { DriverStatus, NodeId } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { clusterCalls } from './calls.ts';
import { ClusterMaintenance } from './cluster-maintenance.ts';
import {
  type ClusterServicesParts,
  newAuthorityRotation,
  newAutopilot,
  newFasterLeaderTransfer,
  newFeatureLevelControl,
  newForwarder,
  newJoinDesk,
  newListSync,
  newMemberOperations,
  newRenewal,
} from './cluster-service-parts.ts';
import { HeartbeatExchange } from './heartbeat-exchange.ts';
import type { JoinDesk } from './join/join-desk.ts';
import type { AuthorityRotation } from './maintenance/authority-rotation.ts';
import type { Autopilot } from './maintenance/autopilot.ts';
import { DigestCheck } from './maintenance/digest-check.ts';
import type { FasterLeaderTransfer } from './maintenance/faster-leader-transfer.ts';
import type { FeatureLevelControl } from './maintenance/feature-level-control.ts';
import { authorityOf, listCertificate } from './maintenance/member-entries.ts';
import type { MemberOperations } from './maintenance/member-operations.ts';
import { ConfigurationChanges } from './membership/configuration-changes.ts';
import type { Member } from './membership/membership.ts';
import type { MembershipListSync } from './membership/membership-list-sync.ts';
import { AppliedIndex } from './standbys/applied-index.ts';
import { Canary } from './standbys/canary.ts';
import { lowDisksThatBlock } from './standbys/low-disks.ts';
import { StateComparison } from './standbys/state-comparison.ts';
import type { Forwarder } from './transport/forwarder.ts';
import type { UnsealedProofs } from './transport/unsealed-proof.ts';

const maintenanceIntervalMs = 5000;

/** The cluster services of a node whose log is open: heartbeats, forwarding, joins, membership changes and maintenance. */
export class ClusterServices {
  /** Changes of the Raft configuration; they succeed only on the leader. */
  readonly changes: ConfigurationChanges;
  readonly operator: MemberOperations;
  readonly autopilot: Autopilot;
  readonly joinDesk: JoinDesk;
  readonly forwarder: Forwarder;
  /** Proofs that this node and others are unsealed. */
  readonly proofs: UnsealedProofs;
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
    const { storage, barrier } = parts.local;
    const { log } = parts.host;
    this.#parts = parts;
    this.#applied = new AppliedIndex(storage.replica);
    this.#digestCheck = new DigestCheck(storage.machine, log);
    this.#fasterLeader = newFasterLeaderTransfer(parts);
    this.changes = new ConfigurationChanges(storage.driver, parts.pause);
    this.canary = new Canary(barrier.store);
    this.operator = newMemberOperations(parts, this.changes);
    this.autopilot = newAutopilot(parts, this.operator);
    this.rotation = newAuthorityRotation(parts, this.changes);
    this.featureLevel = newFeatureLevelControl(parts, this.changes);
    this.lists = newListSync(parts);
    const { lists, changes, autopilot, operator, canary, rotation } = this;
    const renewal = newRenewal(parts, () => this.#leader()?.id);
    const activeMember = () => this.activeMember;
    this.maintenance = new ClusterMaintenance({
      ...parts,
      ...{ lists, changes, autopilot, operator, canary, rotation, renewal, activeMember },
    });
    this.joinDesk = newJoinDesk(parts, changes, () => this.maintenance.updateOwnEntry());
    this.forwarder = newForwarder(parts, () => this.#leader());
    this.proofs = barrier;
    this.stateComparison = this.#newStateComparison();
    this.#heartbeatExchange = new HeartbeatExchange({
      ...parts,
      lists,
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
  statusChanged({ ready, leader, term, byTransfer = false }: DriverStatus): void {
    const { standbys, membershipList, heartbeats, local } = this.#parts;
    this.forwarder.leaderChanged({ byTransfer });
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

  #newStateComparison(): StateComparison {
    const { host, local } = this.#parts;
    return new StateComparison({
      appliedIndex: () => this.#applied.index,
      digestAt: (index) => local.storage.machine.digestAt(index),
      onDigestMismatch: (index) => {
        host.log.error(
          { index },
          "state digest mismatch: this node's records differ from the active node's at this index, so it serves nothing. Replace it, or restart it to compare again",
        );
        host.onDigestMismatch();
        void this.#digestCheck.run();
      },
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
        monotonicNow: () => performance.now(),
      },
      proofs: this.proofs,
      keepAuthority: (authority) => this.maintenance.keepAuthority(authority),
      report: host.report,
      onDigestMismatch: () => void this.#digestCheck.run(),
    });
  }
}
