import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { reasonOf, version } from '@transitd/process';
import type { DriverStatus, LogIndex, NodeId } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { clusterCalls } from './calls.ts';
import { ClusterMaintenance } from './cluster-maintenance.ts';
import type { ClusterPort } from './cluster-port.ts';
import { admit } from './join/admission.ts';
import { JoinDesk } from './join/join-desk.ts';
import { AuthorityRotation } from './maintenance/authority-rotation.ts';
import { Autopilot } from './maintenance/autopilot.ts';
import { DigestCheck } from './maintenance/digest-check.ts';
import { authorityOf, listCertificate } from './maintenance/member-entries.ts';
import { MemberOperations } from './maintenance/member-operations.ts';
import { Renewal } from './maintenance/renewal.ts';
import { ConfigurationChanges } from './membership/configuration-changes.ts';
import { MembershipListSync } from './membership/list-sync.ts';
import type { Member } from './membership/membership.ts';
import type { MembershipList } from './membership/membership-list.ts';
import type { ClusterHost, LocalNode } from './ports/cluster-host.ts';
import { AppliedIndex } from './standbys/applied-index.ts';
import { Canary } from './standbys/canary.ts';
import { EchoSender } from './standbys/echo-sender.ts';
import { FasterLeader } from './standbys/faster-leader.ts';
import type { Heartbeats } from './standbys/heartbeats.ts';
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
  /** This node is no member any more; the configuration in force as it knows it is that of the entry at this index. */
  readonly onRemoved: (confIndex: LogIndex) => void;
  /** A member told who belongs to the cluster. */
  readonly onMembers: () => void;
  /** Members to whom this node has no connection for Raft's messages. */
  readonly unconnected: () => readonly NodeId[];
}

const maintenanceIntervalMs = 5000;

/** A node with its log open, among the others: asks the active node how things are, and does what it falls to the active node to do. */
export class ClusterServices {
  /** Only the leader changes members. */
  readonly changes: ConfigurationChanges;
  readonly operator: MemberOperations;
  readonly autopilot: Autopilot;
  readonly joinDesk: JoinDesk;
  readonly forwarder: Forwarder;
  readonly stateComparison: StateComparison;
  readonly canary: Canary;
  readonly rotation: AuthorityRotation;
  readonly maintenance: ClusterMaintenance;
  readonly lists: MembershipListSync;
  readonly #parts: ClusterServicesParts;
  readonly #applied: AppliedIndex;
  readonly #echoSender: EchoSender;
  readonly #digestCheck: DigestCheck;
  readonly #fasterLeader = new FasterLeader();
  #timer: NodeJS.Timeout | undefined;
  #leads = false;
  #toldOfInterval = false;

  constructor(parts: ClusterServicesParts) {
    const { host, local, membershipList, standbys, client, port } = parts;
    const { storage, barrier, clusterId } = local;
    const { config, log } = host;
    this.#parts = parts;
    this.changes = new ConfigurationChanges(storage.driver, parts.pause);
    this.#applied = new AppliedIndex(storage.replica);
    this.canary = new Canary(barrier.store);
    this.#digestCheck = new DigestCheck(storage.machine, log);
    this.operator = new MemberOperations({
      driver: storage.driver,
      changes: this.changes,
      standbys,
      unconnected: parts.unconnected,
      onStranded: (voters) =>
        log.warn(
          { voters },
          'a voter that cannot be reached may know only nodes that have left: when it returns, it is admitted by the signed membership list alone. Remove it if it does not return',
        ),
    });
    this.autopilot = new Autopilot({ storage, membershipList, store: barrier.store, operator: this.operator, log });
    this.rotation = new AuthorityRotation({
      driver: storage.driver,
      changes: this.changes,
      store: barrier.store,
      clusterId,
      news: (id) => standbys.news(id),
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
        become: (identity) => port.show(identity),
        now: Date.now,
      }),
      activeMember: () => this.activeMember,
    });
    this.joinDesk = this.#makeJoinDesk();
    this.forwarder = new Forwarder({
      client,
      clusterId,
      leader: () => this.#leader(),
      reached: (index, withinMs) => this.#applied.reached(index, withinMs),
      self: config.node_id,
    });
    this.stateComparison = new StateComparison({
      appliedIndex: () => this.#applied.index,
      digestAt: (index) => storage.machine.digestAt(index),
      onDifference: (index) => {
        log.error({ index }, 'the records of this node are others than those of the active node: it serves nothing');
        host.onDifference();
        void this.#digestCheck.run();
      },
    });
    this.#echoSender = this.#makeEchoing();
  }

  /** The member that is believed to be active; never this node. */
  get activeMember(): Member | undefined {
    const leader = this.#leader();
    return leader && this.#parts.membershipList.member(leader.id);
  }

  /** @throws StartError when the cluster port cannot be opened */
  async start(): Promise<void> {
    await this.lists.open();
    this.#parts.onMembers();
    this.statusChanged(this.#parts.local.storage.driver.status()); // a node alone leads already
    await this.#parts.port.serve(this.#calls());
    if (this.#parts.isRemoved()) return;
    this.#echoSender.start();
    this.#timer = setInterval(() => {
      this.#preferFasterLeader();
      void this.maintenance.round();
    }, maintenanceIntervalMs);
  }

  /** Role, term, leader or readiness has changed. */
  statusChanged({ ready, leader, term }: DriverStatus): void {
    const { standbys, membershipList, heartbeats, local } = this.#parts;
    this.forwarder.leaderChanged();
    if (leader !== 0 && leader !== local.nodeId) standbys.follows(leader, term);
    if (ready && !this.#leads) {
      standbys.leads(
        () => membershipList.served.filter((id) => id !== local.nodeId),
        local.storage.driver.consensus().termBefore ?? term,
      );
      this.autopilot.begins();
      this.#fasterLeader.begins({
        nowMs: performance.now(),
        byTransfer: local.storage.driver.consensus().byTransfer ?? false,
      });
      void this.maintenance.round();
    }
    if (!ready) this.joinDesk.clear();
    // Until now it was in contact with the active node: with itself.
    if (this.#leads && !ready) heartbeats.restart(performance.now());
    this.#leads = ready;
    this.#echoSender.now();
  }

  /** The newest committed configuration may have changed: where this node is active it signs the new membership list. */
  configurationChanged(): void {
    void this.maintenance.signList();
  }

  /** The node is unsealed, or sealed: what was heard before lets it serve nothing. */
  sealChanged(): void {
    this.joinDesk.clear();
    this.#echoSender.now();
    void this.maintenance.round();
  }

  /** A member says that this node was removed; ids never come back, so that holds whatever this node knows. */
  removedByNotice(): void {
    this.#parts.onRemoved(this.#parts.local.storage.driver.consensus().confIndex);
  }

  /** This node is no member any more. */
  removed(): void {
    this.#echoSender.stop();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#echoSender.stop();
    this.canary.close();
  }

  /** No leader is heard, nor is this node one. */
  get isLeaderless(): boolean {
    return this.#parts.local.storage.driver.status().leader === 0;
  }

  #leader() {
    const { nodeId, storage } = this.#parts.local;
    const { leader: id, term } = storage.driver.status();
    return id === 0 || id === nodeId ? undefined : { id, term };
  }

  /** A leader whose disk is much slower than that of another voter, for long enough, gives the leadership to that one. */
  #preferFasterLeader(): void {
    const { host, local, membershipList, standbys } = this.#parts;
    const { driver } = local.storage;
    if (!host.isActive()) return;
    const { voters } = driver.consensus().conf;
    const able = driver.peers().filter(({ id, fit, active }) => fit && active && voters.includes(id));
    const candidates = able.map(({ id }) => ({ id, writeMs: standbys.news(id)?.writeMs }));
    const { writeMs } = driver;
    const nowMs = performance.now();
    const heir = this.#fasterLeader.heir({ nowMs, writeMs, candidates });
    if (heir === undefined) return;
    this.#fasterLeader.transferred(nowMs);
    const theirs = candidates.find(({ id }) => id === heir)?.writeMs;
    host.log.warn(
      { to: membershipList.member(heir)?.name, writeMs, theirWriteMs: theirs },
      'leadership is transferred: writes to the disk of this node take much longer than there',
    );
    driver.transfer(heir, ({ kind }) => {
      if (kind !== 'resigned')
        host.log.warn({ to: membershipList.member(heir)?.name }, 'that node did not take the leadership over');
    });
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
        await this.maintenance.forSelf(); // a joiner lets in whom its first member list names: this node has to stand there
        return admit(
          {
            store: barrier.store,
            changes: this.changes,
            clusterId,
            current: membershipList.committedAuthority,
            self: nodeId,
            peers: () => storage.driver.peers(),
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
      onDifference: () => void this.#digestCheck.run(),
    });
  }

  #makeEchoing(): EchoSender {
    const { host, membershipList, heartbeats, client, onMembers } = this.#parts;
    return new EchoSender({
      client,
      onEcho: (to, ms) => {
        const peer = membershipList.member(to)?.name ?? '';
        if (ms === undefined) host.observer.echoFailed(peer);
        else host.observer.echoed(peer, ms);
      },
      heartbeats,
      intervalMs: host.config.cluster_heartbeat_interval,
      target: () => this.#echoTarget(),
      news: () => this.#news(),
      onRemoved: () => this.removedByNotice(),
      onInterval: (theirsMs) => this.#otherInterval(theirsMs),
      onMembers: (from, told) => {
        if (this.isLeaderless && membershipList.told(from, told)) onMembers();
      },
      onList: (from, list) =>
        void this.lists.shown(list, { id: from }).catch((error: unknown) => {
          host.log.warn({ from, reason: reasonOf(error) }, 'the membership list of another node was not taken');
        }),
      onState: (state) => this.stateComparison.told(state),
    });
  }

  /** The leader; while none is known, the members in turn: one of them may know that this node was removed. */
  #echoTarget(): NodeId | undefined {
    const { host, local, membershipList, isRemoved } = this.#parts;
    if (isRemoved() || membershipList.identity === undefined) return undefined;
    const { leader } = local.storage.driver.status();
    if (leader !== 0) return leader === local.nodeId ? undefined : leader;
    const others = membershipList.known.filter(({ id }) => id !== local.nodeId);
    return others[Math.floor(performance.now() / host.config.cluster_heartbeat_interval) % Math.max(1, others.length)]?.id;
  }

  #news() {
    const { config, apiAddress, isUnsealed } = this.#parts.host;
    const sealed = !isUnsealed();
    return {
      name: config.node_id,
      apiAddress: apiAddress(),
      clusterAddress: config.cluster_addr ?? '',
      appliedIndex: this.#applied.index,
      intervalMs: config.cluster_heartbeat_interval,
      writeMs: this.#parts.local.storage.driver.writeMs,
      serves: !sealed && config.performance_standby,
      sealed,
      differs: this.stateComparison.verdict === 'different',
      readsAuthorities: true,
      version,
      hostname: hostname().slice(0, 255),
      listIndex: this.lists.held?.index ?? 0,
    };
  }

  /** What an earlier active node answered lets this one serve for longer than the present one waits for: that ends here. */
  #otherInterval(theirsMs: number | undefined): void {
    const { heartbeats, host } = this.#parts;
    if (heartbeats.echoes.answeredSentMs !== undefined) heartbeats.restart(performance.now());
    if (this.#toldOfInterval) return;
    this.#toldOfInterval = true;
    host.log.error(
      { ownMs: host.config.cluster_heartbeat_interval, theirsMs },
      'cluster_heartbeat_interval is another than on the active node: this node serves nothing',
    );
  }
}
