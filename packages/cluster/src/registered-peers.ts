import { randomBytes, X509Certificate } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Barrier } from '@transitd/barrier';
import { freshForIntervals } from '@transitd/health';
import { LogLimit, reasonOf } from '@transitd/process';
import type { DriverStatus, LogIndex, NodeId } from '@transitd/raft-core';
import { supportedLevels } from '@transitd/storage-fsm';
import { clusterListenAddress } from './cluster-port.ts';
import { authorityOf } from './maintenance/member-entries.ts';
import type { MemberLevels } from './maintenance/raise-decision.ts';
import { makeRequest, readAuthority, signRequest } from './membership/authority.ts';
import { renewalDue } from './membership/certificate.ts';
import type { NodeIdentity } from './membership/identity.ts';
import { initialLevels } from './membership/member-levels.ts';
import { askForReport, askToConfirm, confirmWithinMs, nodeCalls } from './node-calls.ts';
import type { Peers } from './peers.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import type { Engine } from './ports/storage-port.ts';
import { Confirmations } from './registered/confirmations.ts';
import { Freshness } from './registered/freshness.ts';
import { encodeNodeRecord } from './registered/node-record.ts';
import { RegisteredNodes } from './registered/registered-nodes.ts';
import { AppliedIndex } from './standbys/applied-index.ts';
import { reachedState } from './standbys/reached-state.ts';
import { ClusterClient } from './transport/cluster-client.ts';
import { ClusterListener, type ClusterListenerOptions } from './transport/cluster-listener.ts';
import { Forwarder } from './transport/forwarder.ts';
import { localAddressFor } from './transport/peer-connection.ts';

/** Where the nodes of a cluster make themselves known. Others may be able to write there. */
export interface NodeRegistry {
  /** For metrics. */
  readonly name: string;
  /** The records of all known nodes, this one included, by their ids. A changed record is another object. */
  readonly nodes: ReadonlyMap<NodeId, Uint8Array>;
  /** Makes this node known by this record; undefined ends that. */
  register(record: Uint8Array | undefined): void;
  /**
   * Until when every node that has applied the newest commit knows this node, by the monotonic clock; negative infinity if some do not know
   * it.
   */
  readonly registeredUntilMs: number;
  /** Reads the index of the newest commit of any node, linearizably. Any failure rejects. */
  newestIndex(): Promise<LogIndex>;
}

export interface RegisteredPeersParts
  extends Pick<ClusterHost, 'apiAddress' | 'config' | 'isActive' | 'isUnsealed' | 'log' | 'observer' | 'report'> {
  readonly registry: NodeRegistry;
  readonly engine: Engine;
  readonly barrier: Barrier;
}

/**
 * The other nodes of a cluster whose consensus is elsewhere. A node that is unsealed certifies itself with the cluster's authority, whose
 * key is behind the barrier, opens its cluster port and makes itself known. So a certificate shows that a node is unsealed, and no node
 * stores one.
 */
export class RegisteredPeers implements Peers {
  readonly membershipList: RegisteredNodes;
  readonly forwarder: Forwarder;
  readonly standbys: Peers['standbys'];
  readonly stateDigestMatches = true; // an engine outside compares the records of the nodes itself
  readonly stateDigestDiffers = false;
  readonly canaryUtcMs = undefined;
  readonly #parts: RegisteredPeersParts;
  readonly #logLimit: LogLimit;
  readonly #nodeId: NodeId;
  readonly #clusterId: string;
  readonly #freshness: Freshness;
  readonly #client: ClusterClient;
  readonly #applied: AppliedIndex;
  readonly #incarnation = { number: 1, nonce: randomBytes(16).toString('hex') };
  readonly #closing = new AbortController();
  #identity: NodeIdentity | undefined;
  #listener: ClusterListener | undefined;
  #forwarded: ClusterListenerOptions['forwarded'] | undefined;
  /** Ends with the last change of the cluster port; the next change waits for it. */
  #moving: Promise<void> = Promise.resolve();

  constructor(parts: RegisteredPeersParts) {
    const { config, registry, engine, observer, log } = parts;
    const { nodeId, clusterId } = engine.status();
    this.#parts = parts;
    this.#nodeId = nodeId;
    this.#clusterId = clusterId;
    this.#logLimit = new LogLimit({ log, nowMs: () => performance.now() });
    this.#applied = new AppliedIndex(engine.replica);
    this.membershipList = new RegisteredNodes({ clusterId, records: () => registry.nodes });
    this.#freshness = new Freshness({
      intervalMs: config.cluster_heartbeat_interval,
      newestIndex: () => registry.newestIndex(),
      onAnswer: (ms) =>
        ms === undefined ? observer.heartbeatFailed(registry.name) : observer.heartbeatAnswered(registry.name, ms),
    });
    this.#client = new ClusterClient({
      identity: () => this.#requireIdentity(),
      incarnation: () => this.#incarnation,
      member: (id) => this.membershipList.member(id),
      localAddress: localAddressFor(clusterListenAddress(config).host),
    });
    const confirmations = new Confirmations({
      servesForMs: freshForIntervals * config.cluster_heartbeat_interval,
      nowMs: () => performance.now(),
      others: () => this.membershipList.ids.filter((id) => id !== nodeId),
      confirm: (id, index) => askToConfirm(this.#client, id, { index, timeoutMs: 2 * confirmWithinMs }),
      pause: async (ms) => {
        await pause(Math.max(0, ms), undefined, { signal: this.#closing.signal }).catch(() => undefined);
      },
    });
    // Nodes send each other no heartbeats, and so no reports.
    this.standbys = { confirmed: (index) => confirmations.confirmed(index), report: () => undefined };
    this.forwarder = new Forwarder({
      client: this.#client,
      leader: () => {
        const { leader, term } = engine.status();
        // A node that etcd does not answer knows only who was active: a request might hang there until its outcome is unknown.
        const isSilent = this.#freshness.heartbeats.isSilent(performance.now());
        return leader === 0 || leader === nodeId ? undefined : { id: leader, term, isSilent };
      },
      reached: async (index, withinMs) => (await reachedState(index, withinMs, engine)) === 'reached',
      self: config.node_id,
    });
    this.#freshness.start();
  }

  get activeMember() {
    const { leader } = this.#parts.engine.status();
    return leader === this.#nodeId ? undefined : this.membershipList.member(leader);
  }

  get heartbeats(): Peers['heartbeats'] {
    return this.#freshness.heartbeats;
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
    return this.#parts.registry.registeredUntilMs;
  }

  /** Sets the handler of requests that other nodes forward. */
  serveForwarded(forwarded: ClusterListenerOptions['forwarded']): void {
    this.#forwarded = forwarded;
  }

  get identity(): NodeIdentity | undefined {
    return this.#identity;
  }

  /** Called when the role of this node, its term, or the active node has changed. */
  statusChanged(_status: DriverStatus): void {
    this.forwarder.leaderChanged({ byTransfer: false });
    void this.#freshness.ask();
  }

  /** Called when other nodes may have registered, changed their records, or gone. */
  nodesChanged(): void {
    this.#client.recheck();
    this.#listener?.recheck();
  }

  /**
   * Opens or closes the cluster port, as this node is unsealed or sealed; called after each change and every second, because the port may
   * be in use, and the authority may be missing until the active node has made it.
   */
  update(): Promise<void> {
    this.#moving = this.#moving
      .then(() => this.#move())
      .catch((error: unknown) => {
        this.#logLimit.write('warn', 'cluster port', { reason: reasonOf(error) }, 'could not open the cluster port; retrying');
      });
    return this.#moving;
  }

  reportOf(id: NodeId, timeoutMs: number): Promise<object> {
    return askForReport(this.#client, id, timeoutMs);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#freshness.stop();
    this.#client.close();
    await this.#moving;
    await this.#leave();
  }

  async #move(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const { barrier, isUnsealed, isActive, registry, config, apiAddress } = this.#parts;
    if (!isUnsealed()) return this.#leave();
    const authority = isActive() ? await authorityOf(barrier.store, this.#clusterId) : await readAuthority(barrier.store);
    if (authority === undefined || (this.#identity?.authority === authority.certificate && !isRenewalDue(this.#identity))) return;
    const { node_id, cluster_addr = '' } = config;
    const namesake = this.membershipList.namesakeOf({ id: this.#nodeId, name: node_id, clusterAddress: cluster_addr }, authority);
    // The active node registers nevertheless: without it, the others could not forward.
    if (this.#identity === undefined && namesake !== undefined && !isActive())
      throw new Error(
        `the node at ${namesake.clusterAddress} has the node_id ${node_id} too: give each node a node_id of its own`,
      );
    await this.#leave();
    const { key, request } = await makeRequest(this.#nodeId);
    const name = { clusterId: this.#clusterId, nodeId: this.#nodeId };
    const certificate = await signRequest(authority, { request, now: new Date(), ...name });
    const identity = { key, certificate, authority: authority.certificate, membersAtJoin: [] };
    await this.#listen(identity);
    this.#identity = identity;
    this.membershipList.authority = authority;
    const addresses = { apiAddress: apiAddress(), clusterAddress: cluster_addr };
    registry.register(encodeNodeRecord(identity, { name: node_id, ...addresses, levels: supportedLevels }));
  }

  async #leave(): Promise<void> {
    this.#parts.registry.register(undefined);
    this.membershipList.authority = undefined;
    this.#identity = undefined;
    const listener = this.#listener;
    this.#listener = undefined;
    await listener?.close();
  }

  async #listen(identity: NodeIdentity): Promise<void> {
    const { config, log, report } = this.#parts;
    const listener = new ClusterListener({
      identity: () => this.#identity ?? identity,
      authorities: () => [new X509Certificate(identity.authority)],
      memberState: (fingerprint) => this.membershipList.listed(fingerprint),
      calls: nodeCalls({ applied: this.#applied, report }),
      forwarded: (req, res, from) => {
        if (this.#forwarded === undefined) res.destroy();
        else this.#forwarded(req, res, from);
      },
      raft: (socket) => socket.terminate(), // no messages of Raft here
      judge: () => 'in order', // a node has another id after each start
      onRefused: ({ address, reason }) =>
        this.#logLimit.write('warn', `refused ${reason}`, { address, reason }, 'a connection to the cluster port was refused'),
      onFault: (error) => log.error({ reason: reasonOf(error) }, 'a call on the cluster port failed'),
    });
    const address = clusterListenAddress(config);
    await listener.listen(address);
    this.#listener = listener;
    log.info({ address: `${address.host}:${address.port}`, advertised: config.cluster_addr }, 'the cluster port is open');
  }

  #requireIdentity(): NodeIdentity {
    if (this.#identity === undefined) throw new Error('this node is sealed, so it has no certificate');
    return this.#identity;
  }
}

const isRenewalDue = ({ certificate }: NodeIdentity): boolean => renewalDue(new X509Certificate(certificate), Date.now());
