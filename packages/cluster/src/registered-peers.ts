import { randomBytes } from 'node:crypto';
import type { Barrier } from '@transitd/barrier';
import { addressText } from '@transitd/configuration';
import { oneAtATime } from '@transitd/event-loop';
import { freshForIntervals } from '@transitd/health';
import { LogLimit, reasonOf } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { supportedLevels } from '@transitd/storage-fsm';
import type { MemberLevels } from './maintenance/raise-decision.ts';
import { isRenewalDue } from './maintenance/renewal.ts';
import { authorityOf } from './maintenance/signing-authority.ts';
import { makeRequest, readAuthority, signRequest } from './membership/authority.ts';
import type { NodeIdentity } from './membership/identity.ts';
import { initialLevels } from './membership/member-levels.ts';
import type { Member } from './membership/membership.ts';
import { confirmWithinMs, nodeCalls, PeerCalls } from './node-calls.ts';
import type { Peers } from './peers.ts';
import type { ClusterHost, NodeRole, ReportSource } from './ports/cluster-host.ts';
import { Pauses } from './ports/pauses.ts';
import type { Engine } from './ports/storage-port.ts';
import { Confirmations } from './registered/confirmations.ts';
import { Freshness } from './registered/freshness.ts';
import { encodeNodeRecord } from './registered/node-record.ts';
import { type NodeRegistry, RegisteredNodes } from './registered/registered-nodes.ts';
import { FollowedLeader } from './standbys/followed-leader.ts';
import type { Heartbeats } from './standbys/heartbeats.ts';
import { PermissionClock } from './standbys/permission-clock.ts';
import { reachedState } from './standbys/reached-state.ts';
import { ClusterClient } from './transport/cluster-client.ts';
import { ClusterListener, type RaftStreams } from './transport/cluster-listener.ts';
import { Forwarder } from './transport/forwarder.ts';
import { clusterListenAddress, localAddressFor } from './transport/listen-address.ts';

interface RegisteredPeersOptions {
  readonly host: ClusterHost;
  readonly role: NodeRole;
  readonly engine: Engine;
  readonly barrier: Barrier;
  readonly registry: NodeRegistry;
}

/**
 * The other nodes of a cluster whose consensus is elsewhere. A node that is unsealed certifies itself with the cluster's authority, whose
 * key is behind the barrier, opens its cluster port and makes itself known. So a certificate shows that a node is unsealed, and no node
 * stores one.
 */
export class RegisteredPeers implements Peers {
  readonly membershipList: RegisteredNodes;
  readonly forwarder: Forwarder;
  readonly heartbeats: Heartbeats;
  readonly calls: PeerCalls;
  readonly standbys: Peers['standbys'];
  readonly canForward = true;
  readonly canaryUtcMs = undefined;
  readonly #options: RegisteredPeersOptions;
  readonly #logLimit: LogLimit;
  readonly #nodeId: NodeId;
  readonly #clusterId: string;
  readonly #freshness: Freshness;
  readonly #leader: FollowedLeader;
  readonly #client: ClusterClient;
  readonly #pauses = new Pauses();
  #isClosed = false;
  #listener: ClusterListener | undefined;
  /** One change of the cluster port at a time. */
  readonly #exclusively = oneAtATime();

  constructor(options: RegisteredPeersOptions) {
    const { host, registry, engine } = options;
    const { config, log, events } = host;
    const { nodeId, clusterId } = engine.status();
    this.#options = options;
    this.#nodeId = nodeId;
    this.#clusterId = clusterId;
    this.#logLimit = new LogLimit({ log });
    this.membershipList = new RegisteredNodes(clusterId, registry);
    this.#freshness = new Freshness(registry, host);
    this.heartbeats = this.#freshness.heartbeats;
    this.#client = new ClusterClient({
      members: this.membershipList,
      incarnation: { number: 1, nonce: randomBytes(16).toString('hex') },
      localAddress: localAddressFor(clusterListenAddress(config).host),
    });
    this.calls = new PeerCalls(this.#client);
    const confirmations = new Confirmations({
      servesForMs: freshForIntervals * config.cluster_heartbeat_interval,
      clock: new PermissionClock(events),
      self: nodeId,
      nodes: this.membershipList,
      confirm: (id, index) => this.calls.confirm(id, index, 2 * confirmWithinMs),
      pauses: this.#pauses,
    });
    // Nodes send each other no heartbeats, and so no reports.
    this.standbys = { confirmed: (index) => confirmations.confirmed(index), report: () => undefined };
    // A node that etcd does not answer knows only who was active: a request might hang there until its outcome is unknown.
    this.#leader = new FollowedLeader(engine, this.heartbeats);
    this.forwarder = new Forwarder({
      client: this.#client.forwarding(),
      leader: this.#leader,
      reached: async (index, withinMs) => (await reachedState(index, withinMs, engine)) === 'reached',
      self: config.node_id,
    });
    events.on('status', () => this.#statusChanged());
    events.on('configuration', () => this.#nodesChanged());
  }

  get activeMember(): Member | undefined {
    const leader = this.#leader.present;
    return leader && this.membershipList.member(leader.id);
  }

  /** The levels of all other known nodes. A node whose record is not authentic counts too, as one of the initial level. */
  get levels(): readonly MemberLevels[] {
    return this.membershipList.ids
      .filter((id) => id !== this.#nodeId)
      .map((id) => {
        const { name = `node ${id}`, levels = initialLevels } = this.membershipList.member(id) ?? {};
        return { name, levels };
      });
  }

  /** A node that is not registered serves nothing as a standby: nobody would wait for it when rights are taken away. */
  get awaitedUntilMs(): number {
    return this.#options.registry.registeredUntilMs;
  }

  get identity(): NodeIdentity | undefined {
    return this.membershipList.identity;
  }

  /**
   * Opens or closes the cluster port, as this node is unsealed or sealed; called after each change and every second, because the port may
   * be in use, and the authority may be missing until the active node has made it.
   */
  update(reports: ReportSource): Promise<void> {
    return this.#exclusively(() => this.#move(reports)).catch((error: unknown) => {
      this.#logLimit.write('warn', 'cluster port', { reason: reasonOf(error) }, 'could not open the cluster port; retrying');
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#pauses.end();
    this.#freshness.stop();
    this.#client.close();
    await this.#exclusively(() => this.#leave());
  }

  /** The role of this node, its term, or the active node has changed. */
  #statusChanged(): void {
    this.forwarder.leaderChanged({ byTransfer: false });
    void this.#freshness.ask();
  }

  /** Other nodes may have registered, changed their records, or gone. */
  #nodesChanged(): void {
    this.#client.recheck();
    this.#listener?.recheck();
  }

  async #move(reports: ReportSource): Promise<void> {
    if (this.#isClosed) return;
    const { host, barrier, role, registry } = this.#options;
    const { config, api } = host;
    if (!role.isUnsealed) return this.#leave();
    const { identity: present } = this.membershipList;
    const authority = role.isActive ? await authorityOf(barrier.store, this.#clusterId) : await readAuthority(barrier.store);
    if (authority === undefined || (present && !isRenewalDue(present, authority.certificate, Date.now()))) return;
    const { node_id, cluster_addr = '' } = config;
    const namesake = this.membershipList.namesakeOf({ id: this.#nodeId, name: node_id, clusterAddress: cluster_addr }, authority);
    // The active node registers nevertheless: without it, the others could not forward.
    if (present === undefined && namesake !== undefined && !role.isActive)
      throw new Error(
        `the node at ${namesake.clusterAddress} has the node_id ${node_id} too: give each node a node_id of its own`,
      );
    await this.#leave();
    const { key, request } = await makeRequest(this.#nodeId);
    const name = { clusterId: this.#clusterId, nodeId: this.#nodeId };
    const certificate = await signRequest(authority, { request, now: new Date(), ...name });
    const identity = { key, certificate, authority: authority.certificate, membersAtJoin: [] };
    this.membershipList.identity = identity;
    try {
      await this.#listen(reports);
    } catch (error) {
      this.membershipList.identity = undefined;
      throw error;
    }
    const addresses = { apiAddress: api.url, clusterAddress: cluster_addr };
    registry.register(encodeNodeRecord(identity, { name: node_id, ...addresses, levels: supportedLevels }));
  }

  async #leave(): Promise<void> {
    this.#options.registry.register(undefined);
    this.membershipList.identity = undefined;
    const listener = this.#listener;
    this.#listener = undefined;
    await listener?.close();
  }

  async #listen(reports: ReportSource): Promise<void> {
    const { host, engine } = this.#options;
    const { config, log, forwarded } = host;
    const listener = new ClusterListener({
      members: this.membershipList,
      calls: nodeCalls(engine.replica, reports),
      forwarded,
      raft: noRaft,
      onRefused: ({ address, reason }) =>
        this.#logLimit.write('warn', `refused ${reason}`, { address, reason }, 'a connection to the cluster port was refused'),
      onFault: (error) => log.error({ reason: reasonOf(error) }, 'a call on the cluster port failed'),
    });
    const address = clusterListenAddress(config);
    await listener.listen(address);
    this.#listener = listener;
    log.info({ address: addressText(address), advertised: config.cluster_addr }, 'the cluster port is open');
  }
}

/** No messages of Raft here, and a node has another id after each start. */
const noRaft: RaftStreams = { accept: (socket) => socket.terminate(), judge: () => 'in order' };
