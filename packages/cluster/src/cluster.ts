import type { Barrier } from '@transitd/barrier';
import { RepeatingTask } from '@transitd/event-loop';
import { reasonOf, StartError, systemClock } from '@transitd/process';
import type { DriverStatus } from '@transitd/raft-core';
import { acceptsWrites, StoreError } from '@transitd/storage-fsm';
import { ClusterPort } from './cluster-port.ts';
import { HeartbeatExchange } from './heartbeat-exchange.ts';
import { heartbeatHandler } from './heartbeat-handler.ts';
import { Admissions } from './join/admission.ts';
import { JoinDesk } from './join/join-desk.ts';
import { ListDelivery, listHandler, listPath } from './list-delivery.ts';
import { AuthorityRotation } from './maintenance/authority-rotation.ts';
import { Autopilot } from './maintenance/autopilot.ts';
import { DigestCheck } from './maintenance/digest-check.ts';
import { FasterLeaderTransfer } from './maintenance/faster-leader.ts';
import { FeatureLevelControl } from './maintenance/feature-level-control.ts';
import { updateMemberEntries } from './maintenance/member-entries.ts';
import { MemberOperations } from './maintenance/member-operations.ts';
import { OwnEntry } from './maintenance/own-entry.ts';
import { RaftLevels } from './maintenance/raft-levels.ts';
import { Renewal, renewalHandler, renewPath } from './maintenance/renewal.ts';
import { authorityHandler, restorePath, SigningAuthority } from './maintenance/signing-authority.ts';
import type { ClusterAuthority } from './membership/authority.ts';
import { ConfigurationChanges } from './membership/configuration-changes.ts';
import type { NodeIdentity } from './membership/identity.ts';
import type { Member } from './membership/membership.ts';
import type { MembershipList } from './membership/membership-list.ts';
import { MembershipListSync } from './membership/membership-list-sync.ts';
import { confirmWithinMs, nodeCalls, type PeerCalls } from './node-calls.ts';
import type { Peers } from './peers.ts';
import type { ClusterHost, NodeRole, ReportSource } from './ports/cluster-host.ts';
import type { Storage } from './ports/storage-port.ts';
import { type RaftConnections, snapshotHandler, snapshotPath } from './raft-connections.ts';
import { Canary } from './standbys/canary.ts';
import { FollowedLeader } from './standbys/followed-leader.ts';
import { heartbeatPath } from './standbys/heartbeat-wire.ts';
import { Heartbeats } from './standbys/heartbeats.ts';
import { reachedState } from './standbys/reached-state.ts';
import type { Standbys } from './standbys/standbys.ts';
import type { StateComparison } from './standbys/state-comparison.ts';
import { Forwarder } from './transport/forwarder.ts';
import type { GuestHandlers } from './transport/guest-server.ts';
import { unsealedHandler, unsealedPath } from './transport/unsealed-proof.ts';

const maintenanceIntervalMs = 5000;

export interface ClusterOptions {
  readonly host: ClusterHost;
  readonly connections: RaftConnections;
  readonly storage: Storage;
  readonly barrier: Barrier;
  readonly role: NodeRole;
  readonly comparison: StateComparison;
}

/**
 * This node among the other members: the cluster port and its calls, heartbeats, forwarding, joins, membership changes and the periodic
 * work. The active node works for the whole cluster, every other node for itself.
 */
export class Cluster implements Peers {
  readonly membershipList: MembershipList;
  readonly heartbeats: Heartbeats;
  readonly standbys: Standbys;
  readonly forwarder: Forwarder;
  readonly calls: PeerCalls;
  /** Membership changes by an operator; they succeed only on the leader. */
  readonly operator: MemberOperations;
  readonly autopilot: Autopilot;
  readonly rotation: AuthorityRotation;
  readonly featureLevel: FeatureLevelControl;
  readonly joinDesk: JoinDesk;
  readonly canForward = true;
  readonly awaitedUntilMs = Number.POSITIVE_INFINITY; // the configuration in the log names the nodes
  readonly #options: ClusterOptions;
  readonly #leader: FollowedLeader;
  readonly #changes: ConfigurationChanges;
  readonly #authority: SigningAuthority;
  readonly #lists: MembershipListSync;
  readonly #delivery: ListDelivery;
  readonly #port: ClusterPort;
  readonly #ownEntry: OwnEntry;
  readonly #renewal: Renewal;
  readonly #canary: Canary;
  readonly #digestCheck: DigestCheck;
  readonly #fasterLeader: FasterLeaderTransfer;
  readonly #exchange: HeartbeatExchange;
  readonly #maintenance = new RepeatingTask(maintenanceIntervalMs, () => {
    if (this.#options.role.isActive) this.#fasterLeader.transferIfDue();
    void this.maintain();
  });
  #isLeading = false;
  #isMaintaining = false;

  constructor(options: ClusterOptions) {
    const { host, connections, storage, barrier, role, comparison } = options;
    const { config, log, events } = host;
    const { membershipList, peers } = connections;
    const { client, calls, transport, standbys } = peers;
    const { driver } = storage;
    const { store } = barrier;
    const { nodeId, clusterId } = driver.status();
    this.#options = options;
    membershipList.useLog(storage);
    peers.useDriver(driver);
    this.membershipList = membershipList;
    this.standbys = standbys;
    this.calls = calls;
    this.heartbeats = new Heartbeats(config.cluster_heartbeat_interval, performance.now(), events);
    this.#leader = new FollowedLeader(storage, this.heartbeats);
    const leader = this.#leader;
    const changes = new ConfigurationChanges(driver, peers.pauses);
    this.#changes = changes;
    const authority = new SigningAuthority(store, clusterId, membershipList);
    this.#authority = authority;
    const lists = new MembershipListSync(host, membershipList, clusterId);
    this.#lists = lists;
    const port = new ClusterPort(host, membershipList, { raft: transport, driver });
    this.#port = port;
    this.forwarder = new Forwarder({
      client: client.forwarding(barrier),
      leader,
      reached: async (index, withinMs) => (await reachedState(index, withinMs, storage)) === 'reached',
      self: config.node_id,
    });
    this.operator = new MemberOperations({ driver, changes, standbys, transport, log });
    this.autopilot = new Autopilot({ storage, membershipList, store, operator: this.operator, log });
    this.rotation = new AuthorityRotation({ driver, changes, store, clusterId, standbys, log });
    this.featureLevel = new FeatureLevelControl({ levels: new RaftLevels(storage, changes, standbys), config, log });
    this.#delivery = new ListDelivery({ host, role, nodeId, connections, lists, authority });
    this.#ownEntry = new OwnEntry({ host, nodeId, changes, authority, membershipList, port });
    this.#renewal = new Renewal({ client, membershipList, leader, port, clock: systemClock });
    this.#canary = new Canary(store);
    this.#digestCheck = new DigestCheck(storage.machine, log);
    this.#fasterLeader = new FasterLeaderTransfer({
      driver,
      membershipList,
      standbys,
      log,
      heartbeatIntervalMs: config.cluster_heartbeat_interval,
    });
    const admissions = new Admissions({ config, storage, changes, authority, ownEntry: this.#ownEntry });
    this.joinDesk = new JoinDesk({ barrier, authority, admissions, clock: systemClock });
    const { heartbeats } = this;
    this.#exchange = new HeartbeatExchange({ host, role, storage, connections, heartbeats, lists, comparison });
    this.#listen();
  }

  /** The certificate of the cluster port; undefined on a founder that has not been active yet. */
  get identity(): NodeIdentity | undefined {
    return this.membershipList.identity;
  }

  get activeMember(): Member | undefined {
    const leader = this.#leader.present;
    return leader && this.membershipList.member(leader.id);
  }

  /** Of this node's records with the active node's. */
  get comparison(): StateComparison {
    return this.#options.comparison;
  }

  get canaryUtcMs(): number | undefined {
    return this.#canary.utcMs;
  }

  /** Sets the part of the cluster port that callers use who are no members; undefined if this node no longer admits any. */
  serveGuests(handlers: GuestHandlers | undefined): void {
    this.#port.serveGuests(handlers);
  }

  /** Connects to the members, opens the cluster port, and starts heartbeats and maintenance. @throws StartError */
  async start(reports: ReportSource): Promise<void> {
    const { host, role, storage, barrier, connections } = this.#options;
    const { driver, replica, snapshots } = storage;
    this.#checkName();
    connections.peers.followMembers();
    await this.#lists.open();
    host.events.emit('members');
    this.#statusChanged(driver.status()); // in a cluster of one, this node is the leader already
    const [lists, authority, changes] = [this.#lists, this.#authority, this.#changes];
    await this.#port.serve({
      [`POST ${unsealedPath}`]: unsealedHandler(barrier), // by a node that forwards requests, on each new connection
      [`POST ${heartbeatPath}`]: heartbeatHandler({
        ...{ config: host.config, role, storage, connections, lists },
        digestCheck: this.#digestCheck,
      }),
      ...nodeCalls(replica, reports),
      [`POST ${renewPath}`]: renewalHandler({ role, authority, changes, clock: systemClock }),
      [`POST ${listPath}`]: listHandler(driver, lists),
      [`POST ${restorePath}`]: authorityHandler(role, authority),
      [`GET ${snapshotPath}`]: snapshotHandler(snapshots),
    });
    if (connections.removed) return;
    this.#exchange.start();
    this.#maintenance.start();
  }

  /** Runs one round of maintenance; a timer does so every few seconds. A failed task is retried in the next round. */
  async maintain(): Promise<void> {
    if (this.#isMaintaining) return;
    const { host, role } = this.#options;
    void this.#port.retryOpen();
    void this.#delivery.send();
    this.operator.observe();
    void this.#canary.refresh(); // it may have arrived while this node was sealed
    if (!role.isActive) return this.#renew();
    this.#isMaintaining = true;
    try {
      await this.#ownEntry.update();
      await updateMemberEntries(this.#changes, this.standbys);
      await this.#delivery.sign();
      await this.autopilot.maintenance();
      if (this.#writesCanary) await this.#canary.write(Date.now());
      await this.rotation.advance();
    } catch (error) {
      host.log.warn({ reason: reasonOf(error) }, 'maintenance of the members failed; retrying in the next round');
    } finally {
      this.#isMaintaining = false;
    }
  }

  /** Returns the signing authority; undefined before it is created. @throws StoreError */
  signingAuthority(): Promise<ClusterAuthority | undefined> {
    return this.#authority.read();
  }

  /** Makes the active node, which may be this node, write the authority's record again. @throws ClusterCallError, StoreError */
  async restoreAuthority(authority: ClusterAuthority): Promise<void> {
    const { role, connections } = this.#options;
    if (role.isActive) return this.#authority.keep(authority);
    const active = this.activeMember;
    if (active === undefined) throw new StoreError('not_leader', 'no active node is known');
    const { client } = connections.peers;
    const { status } = await client.post(active.id, restorePath, { json: authority, timeoutMs: confirmWithinMs });
    if (status !== 200) throw new StoreError('not_leader', `the active node did not accept the authority: status ${status}`);
  }

  async close(): Promise<void> {
    this.#options.connections.peers.pauses.end();
    this.#maintenance.stop();
    this.#exchange.stop();
    this.#canary.close();
    await this.#port.close();
  }

  #listen(): void {
    const { host, storage, connections } = this.#options;
    const { events } = host;
    events.on('status', (status) => this.#statusChanged(status));
    events.on('services', () => this.#servicesChanged());
    events.on('configuration', () => void this.#delivery.sign());
    events.on('removed', () => this.#exchange.stop());
    // Ids are never reused, so a notice is valid whatever this node's log says.
    events.on('removalNotice', () => connections.endMembership(storage.driver.consensus().confIndex));
    events.on('digestDiffers', () => void this.#digestCheck.run());
  }

  #statusChanged({ ready, leader, term, byTransfer = false }: DriverStatus): void {
    const { driver } = this.#options.storage;
    const { nodeId } = driver.status();
    this.forwarder.leaderChanged({ byTransfer });
    if (leader !== 0 && leader !== nodeId) {
      this.standbys.leaderFound(leader, term);
      this.heartbeats.leaderFound(term, performance.now());
    }
    if (ready && !this.#isLeading) {
      this.standbys.termBegins(
        () => this.membershipList.possiblyServing.filter((id) => id !== nodeId),
        driver.consensus().termBefore ?? term,
      );
      this.autopilot.leadershipBegins();
      this.#fasterLeader.leadershipBegins();
      this.featureLevel.leadershipBegins();
      void this.maintain();
    }
    if (!ready) this.joinDesk.clear();
    // Until now this node was the active node itself: its contact as a standby begins now.
    if (this.#isLeading && !ready) this.heartbeats.restart(performance.now());
    this.#isLeading = ready;
    this.#exchange.sendNow();
  }

  /** This node was sealed or unsealed: earlier heartbeats no longer let it serve. */
  #servicesChanged(): void {
    this.heartbeats.restart(performance.now());
    this.joinDesk.clear();
    this.#exchange.sendNow();
    void this.maintain();
  }

  /** A renamed node could be mistaken for another member: only a sole member may change its name. @throws StartError */
  #checkName(): void {
    const { host, storage } = this.#options;
    const { node_id: name } = host.config;
    const former = this.membershipList.member(storage.driver.status().nodeId)?.name;
    if (former === undefined || former === name) return;
    if (this.membershipList.knownMembers.length > 1)
      throw new StartError(
        `node_id is ${name}, but data_dir belongs to the member ${former} of a cluster: set node_id to ${former}, ` +
          `or to rename the node, remove ${former} from the cluster, empty data_dir and start the node under its new name`,
      );
    host.log.warn({ former, name }, 'node_id was changed: this node, the only member of its cluster, has a new name');
  }

  /** Whether another node or cluster reads the canary of this one. A secondary has its primary's. */
  get #writesCanary(): boolean {
    const { replication } = this.#options.storage.machine;
    return replication?.role === 'primary' || (acceptsWrites(replication) && this.membershipList.members.length > 1);
  }

  async #renew(): Promise<void> {
    const { host, connections } = this.#options;
    if (connections.removed) return;
    try {
      if (await this.#renewal.renewIfDue()) host.log.info('renewed the certificate of this node');
    } catch (error) {
      host.log.warn({ reason: reasonOf(error) }, 'could not renew the certificate of this node; retrying');
    }
  }
}
