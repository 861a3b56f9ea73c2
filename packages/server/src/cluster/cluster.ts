import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Barrier } from '@transitd/barrier';
import type { ConfState, DriverStatus, LogIndex, NodeId } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import type { Config } from '../config.ts';
import type { Logger } from '../log.ts';
import type { MembershipPorts, Storage } from '../node/storage.ts';
import { version } from '../version.ts';
import { admit } from './admission.ts';
import { Applied } from './applied.ts';
import { Canary } from './canary.ts';
import { Changes } from './changes.ts';
import { ClusterClient } from './cluster-client.ts';
import { type ClusterHandler, ClusterListener, type ClusterListenerOptions } from './cluster-listener.ts';
import { echoNews } from './echo-wire.ts';
import { Echoing } from './echoing.ts';
import { Forwarder } from './forwarder.ts';
import { Heartbeats } from './heartbeats.ts';
import { type NodeIdentity, readIdentity, writeIdentity } from './identity.ts';
import { JoinDesk } from './join-desk.ts';
import { decodeMembership, type Member, type Membership, nobody, type Standing, standingOf } from './membership.ts';
import { localAddressFor } from './peer-connection.ts';
import { WebSocketTransport } from './raft-transport.ts';
import { rememberRemoval, removalFile } from './removal.ts';
import { authorityOf, careForMembers, careForSelf, certify } from './self-care.ts';
import { Standbys } from './standbys.ts';

/** What the node around it is and does. */
export interface ClusterHost {
  readonly config: Config;
  readonly log: Logger;
  /** The data directory. */
  readonly directory: string;
  /** URL of this node's API. */
  readonly apiAddress: () => string;
  /** It leads, and serves. */
  readonly isActive: () => boolean;
  /** It has its keys, and what serves is loaded. */
  readonly isUnsealed: () => boolean;
  /** This node is no member any more. */
  readonly onRemoved: () => void;
}

/** The node's own parts, once they are open. */
interface Own {
  readonly storage: Storage;
  readonly barrier: Barrier;
  readonly nodeId: NodeId;
  readonly clusterId: string;
}

/** What becomes of the requests that other members hand on. */
type Forwarded = ClusterListenerOptions['forwarded'];

const confirmWithinMs = 1000;
const canaryIntervalMs = 5000;

/** What a node does together with others: their messages, echoes, forwarded requests, and the list of members. */
export class Cluster {
  readonly heartbeats: Heartbeats;
  readonly standbys: Standbys;
  readonly #host: ClusterHost;
  readonly #client: ClusterClient;
  readonly #timers: NodeJS.Timeout[] = [];
  #identity: NodeIdentity | undefined;
  #removed: boolean;
  #transport: WebSocketTransport | undefined;
  #listener: ClusterListener | undefined;
  #forwarded: Forwarded | undefined;
  #membership: Membership = nobody;
  #own: Own | undefined;
  #changes: Changes | undefined;
  #echoing: Echoing | undefined;
  #forwarder: Forwarder | undefined;
  #applied: Applied | undefined;
  #canary: Canary | undefined;
  #joinDesk: JoinDesk | undefined;
  #leading = false;
  #caring = false;
  /** Ends what waits for time to pass. */
  readonly #closing = new AbortController();

  private constructor(host: ClusterHost, identity: NodeIdentity | undefined, removed: boolean) {
    const { cluster_heartbeat_interval: intervalMs } = host.config;
    this.#host = host;
    this.#identity = identity;
    this.#removed = removed;
    this.heartbeats = new Heartbeats(intervalMs, performance.now());
    this.#client = new ClusterClient({
      identity: () => this.#requireIdentity(),
      member: (id) => this.members.find((member) => member.id === id),
      localAddress: this.#localAddress,
    });
    this.standbys = new Standbys({
      servesForMs: 2 * intervalMs,
      nowMs: () => performance.now(),
      pause: this.#pause,
      ask: async (id, index) => {
        const { status, json } = await this.#client.post(id, '/cluster/confirm', {
          json: { index },
          timeoutMs: confirmWithinMs + intervalMs,
        });
        if (status !== 200) throw new Error(`node ${id} did not confirm`);
        return (json as { appliedIndex: LogIndex }).appliedIndex;
      },
    });
  }

  /** Reads by what this node is known to others. @throws StartError */
  static async open(host: ClusterHost): Promise<Cluster> {
    const identity = await readIdentity(host.directory);
    return new Cluster(host, identity, existsSync(join(host.directory, removalFile)));
  }

  /** Whether this node was told that it is no member any more. */
  get removed(): boolean {
    return this.#removed;
  }

  /** Everybody, as the log tells; before it does, as was told at the join. */
  get members(): readonly Member[] {
    return this.#membership.members.length > 0 ? this.#membership.members : (this.#identity?.seeds ?? []);
  }

  get membership(): Membership {
    return this.#membership;
  }

  /** The member that is believed to be active; never this node. */
  get activeMember(): Member | undefined {
    const leader = this.#own?.storage.driver.status().leader;
    return leader === this.#own?.nodeId ? undefined : this.members.find(({ id }) => id === leader);
  }

  get forwarder(): Forwarder | undefined {
    return this.#forwarder;
  }

  /** Only the leader changes members. */
  get changes(): Changes {
    if (this.#changes === undefined) throw new StoreError('not_leader', 'this node does not lead');
    return this.#changes;
  }

  get joinDesk(): JoinDesk | undefined {
    return this.#joinDesk;
  }

  get canaryUtcMs(): number | undefined {
    return this.#canary?.utcMs;
  }

  /** Who takes in what other members hand on. */
  serveForwarded(forwarded: Forwarded): void {
    this.#forwarded = forwarded;
  }

  /** For the driver of this node. */
  get ports(): MembershipPorts {
    return {
      removed: this.#removed,
      peers: ({ nodeId, snapshots, random }) => {
        this.#transport = new WebSocketTransport({
          self: nodeId,
          identity: () => this.#requireIdentity(),
          localAddress: this.#localAddress,
          onRemoved: () => this.#removedByNotice(),
        });
        return { transport: this.#transport, snapshots, random };
      },
      onRemoved: (atIndex) => void this.#endMembership(atIndex),
      removedAt: (id) => {
        const list = this.#removedCommitted();
        return list?.removed.some((one) => one.id === id) === true ? this.#own?.storage.driver.consensus().confIndex : undefined;
      },
      promotes: (id) => this.#membership.members.find((member) => member.id === id)?.nonVoter === false,
    };
  }

  /** The configuration in force has changed. */
  configurationChanged({ context }: ConfState): void {
    this.#membership = decodeMembership(context);
    this.#transport?.members(this.members);
    this.#client.recheck();
    this.#listener?.recheck();
  }

  /** Role, term, leader or readiness has changed. */
  statusChanged({ ready }: DriverStatus): void {
    this.#forwarder?.leaderChanged();
    if (ready && !this.#leading) {
      const own = this.#own;
      this.standbys.leads(() => this.members.map(({ id }) => id).filter((id) => id !== own?.nodeId));
      void this.care();
    }
    if (!ready) this.#joinDesk?.clear();
    this.#leading = ready;
    this.#echoing?.now();
  }

  /** The node is unsealed, or sealed: what was heard before lets it serve nothing. */
  sealChanged(): void {
    this.heartbeats.restart(performance.now());
    this.#joinDesk?.clear();
    this.#echoing?.now();
    void this.care();
  }

  /** Begins to take part; the log and the records are open. */
  async start({ storage, barrier }: { readonly storage: Storage; readonly barrier: Barrier }): Promise<void> {
    const { nodeId, clusterId } = storage.driver.status();
    this.#own = { storage, barrier, nodeId, clusterId };
    this.#membership = decodeMembership(storage.driver.consensus().conf.context);
    this.#changes = new Changes(storage.driver, this.#pause);
    this.#applied = new Applied(storage.replica);
    this.#canary = new Canary(barrier.store);
    const applied = this.#applied;
    this.#joinDesk = new JoinDesk({
      wrap: (exchanged) => barrier.wrapForJoin(exchanged),
      cluster: async () => ({ id: clusterId, authority: (await authorityOf(barrier.store, clusterId)).certificate }),
      admit: (joiner) =>
        admit({ store: barrier.store, changes: this.changes, clusterId, peers: () => storage.driver.peers() }, joiner),
      nowMs: () => performance.now(),
      randomBytes,
    });
    this.#forwarder = new Forwarder({
      client: this.#client,
      clusterId,
      leader: () => {
        const { leader, term } = storage.driver.status();
        return leader === 0 || leader === nodeId ? undefined : { id: leader, term };
      },
      reached: (index, withinMs) => applied.reached(index, withinMs),
    });
    this.#echoing = new Echoing({
      client: this.#client,
      heartbeats: this.heartbeats,
      intervalMs: this.#host.config.cluster_heartbeat_interval,
      target: () => this.#echoTarget(),
      news: () => this.#news(),
      onRemoved: () => this.#removedByNotice(),
    });
    this.#transport?.members(this.members);
    if (this.#identity !== undefined) await this.#listen();
    if (this.#removed) return;
    this.#echoing.start();
    this.#timers.push(setInterval(() => void this.care(), canaryIntervalMs));
  }

  /** What the active node does for the cluster, at once when it becomes active and every few seconds from then on. */
  async care(): Promise<void> {
    if (this.#caring || !this.#host.isActive() || this.#own === undefined) return;
    this.#caring = true;
    try {
      await careForSelf(this.#careParts(this.#own));
      await careForMembers(this.changes, (id) => this.standbys.news(id));
      if (this.members.length > 1) await this.#canary?.write(Date.now());
    } catch (error) {
      this.#host.log.warn({ reason: reasonOf(error) }, 'the care for the members was left for the next round');
    } finally {
      this.#caring = false;
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const timer of this.#timers) clearInterval(timer);
    this.#echoing?.stop();
    this.#canary?.close();
    this.#client.close();
    this.#transport?.close();
    await this.#listener?.close();
  }

  readonly #pause = async (ms: number): Promise<void> => {
    await pause(Math.max(0, ms), undefined, { signal: this.#closing.signal }).catch(() => undefined);
  };

  get #listenAddress(): { readonly host: string; readonly port: number } {
    const { cluster_listen, cluster_addr = '', listeners } = this.#host.config;
    const port = Number(cluster_addr.slice(cluster_addr.lastIndexOf(':') + 1));
    return cluster_listen ?? { host: listeners[0]?.address.host ?? '127.0.0.1', port };
  }

  get #localAddress(): string | undefined {
    return localAddressFor(this.#listenAddress.host);
  }

  #requireIdentity(): NodeIdentity {
    if (this.#identity === undefined) throw new StoreError('stopped', 'this node has no certificate yet');
    return this.#identity;
  }

  async #listen(): Promise<void> {
    if (this.#listener !== undefined) return;
    const calls: Record<string, ClusterHandler> = {
      'POST /cluster/echo': this.#onEcho,
      'POST /cluster/confirm': this.#onConfirm,
      'POST /cluster/renew': this.#onRenew,
      'GET /cluster/snapshot': this.#onSnapshot,
    };
    const listener = new ClusterListener({
      identity: () => this.#requireIdentity(),
      standing: (fingerprint) => this.#standing(fingerprint),
      calls,
      forwarded: (req, res, from) => {
        if (this.#forwarded === undefined) res.destroy();
        else this.#forwarded(req, res, from);
      },
      raft: (socket, from) => {
        if (this.#transport === undefined) socket.terminate();
        else this.#transport.accept(socket, from);
      },
      onFault: (error) => this.#host.log.error({ reason: reasonOf(error) }, 'a call on the cluster port failed'),
    });
    await listener.listen(this.#listenAddress);
    this.#listener = listener;
    this.#host.log.info({ address: this.#host.config.cluster_addr }, 'the cluster port is open');
  }

  /** Removed counts only when it is committed: a configuration in force may be rolled back. */
  #standing(fingerprint: string): Standing | undefined {
    const standing = standingOf({ ...this.#membership, members: this.members }, fingerprint);
    return standing?.standing === 'removed' && this.#removedCommitted() === undefined ? undefined : standing;
  }

  #removedCommitted(): Membership | undefined {
    const status = this.#own?.storage.driver.consensus();
    return status !== undefined && status.confIndex <= status.commitIndex ? this.#membership : undefined;
  }

  /** The leader; while none is known, the members in turn: one of them may know that this node was removed. */
  #echoTarget(): NodeId | undefined {
    if (this.#own === undefined || this.#removed || this.#identity === undefined) return undefined;
    const { nodeId, storage } = this.#own;
    const { leader } = storage.driver.status();
    if (leader !== 0) return leader === nodeId ? undefined : leader;
    const others = this.members.filter(({ id }) => id !== nodeId);
    return others[Math.floor(performance.now() / this.#host.config.cluster_heartbeat_interval) % Math.max(1, others.length)]?.id;
  }

  #news() {
    const { config, apiAddress, isUnsealed } = this.#host;
    const sealed = !isUnsealed();
    return {
      name: config.node_id,
      apiAddress: apiAddress(),
      clusterAddress: config.cluster_addr ?? '',
      appliedIndex: this.#applied?.index ?? 0,
      serves: !sealed && config.performance_standby,
      sealed,
      version,
    };
  }

  /** Answered under a lease only: a leader that was deposed must not keep a standby serving. */
  readonly #onEcho: ClusterHandler = async ({ from, certificate, body }) => {
    const news = echoNews.parse(JSON.parse(body.toString('utf8')));
    const driver = this.#own?.storage.driver;
    if (driver === undefined || !this.#host.isActive() || !driver.leaseRead()) return { status: 503, json: { active: false } };
    this.standbys.heard(from, { ...news, certificate });
    const answer = {
      commitIndex: driver.status().commitIndex,
      utcMs: Date.now(),
      replication: { performance: 'disabled', disasterRecovery: 'disabled' },
    };
    return { status: 200, json: answer };
  };

  readonly #onConfirm: ClusterHandler = async ({ body }) => {
    const { index } = JSON.parse(body.toString('utf8')) as { index?: unknown };
    if (typeof index !== 'number' || this.#applied === undefined) return { status: 400, json: {} };
    await this.#applied.reached(index, confirmWithinMs);
    return { status: 200, json: { appliedIndex: this.#applied.index } };
  };

  readonly #onRenew: ClusterHandler = async ({ from, body }) => {
    const { request } = JSON.parse(body.toString('utf8')) as { request?: unknown };
    if (typeof request !== 'string' || this.#own === undefined) return { status: 400, json: {} };
    if (!this.#host.isActive()) throw new StoreError('not_leader', 'this node is not the active one');
    const certificate = await certify(this.#careParts(this.#own), { nodeId: from, request });
    return { status: 200, json: { certificate } };
  };

  readonly #onSnapshot: ClusterHandler = async () => ({ status: 404, json: {} });

  #careParts({ barrier, clusterId, nodeId }: Own): Parameters<typeof careForSelf>[0] {
    const { config, apiAddress } = this.#host;
    return {
      store: barrier.store,
      changes: this.changes,
      clusterId,
      nodeId,
      self: () => ({
        name: config.node_id,
        apiAddress: apiAddress(),
        clusterAddress: config.cluster_addr ?? '',
        nonVoter: config.non_voter,
      }),
      identity: () => this.#identity,
      become: async (identity) => {
        await writeIdentity(this.#host.directory, identity);
        this.#identity = identity;
        this.#listener?.recheck();
        await this.#listen();
      },
    };
  }

  /** A member says that this node was removed; ids never come back, so that holds whatever this node knows. */
  #removedByNotice(): void {
    if (this.#own === undefined || this.#removed) return;
    void this.#endMembership(this.#own.storage.driver.consensus().confIndex);
  }

  async #endMembership(atIndex: LogIndex): Promise<void> {
    if (this.#removed) return;
    this.#removed = true;
    this.#host.onRemoved();
    this.#echoing?.stop();
    await rememberRemoval(this.#host.directory, atIndex);
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
