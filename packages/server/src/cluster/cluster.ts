import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Barrier } from '@transitd/barrier';
import type { DriverStatus, LogIndex, NodeId } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import type { Config } from '../config.ts';
import type { Logger } from '../log.ts';
import type { NodeObserver } from '../node/observer.ts';
import type { MembershipPorts, Storage } from '../node/storage.ts';
import { version } from '../version.ts';
import { admit } from './admission.ts';
import { Agreement } from './agreement.ts';
import { Applied } from './applied.ts';
import type { ClusterAuthority } from './authority.ts';
import { Autopilot } from './autopilot-care.ts';
import { authorityCall, clusterCalls, confirmWithinMs } from './calls.ts';
import { Canary } from './canary.ts';
import { Changes } from './changes.ts';
import { ClusterClient } from './cluster-client.ts';
import { ClusterListener, type ClusterListenerOptions } from './cluster-listener.ts';
import { Echoing } from './echoing.ts';
import { Forwarder } from './forwarder.ts';
import { Heartbeats } from './heartbeats.ts';
import { type NodeIdentity, readIdentity } from './identity.ts';
import { JoinDesk } from './join-desk.ts';
import type { Member } from './membership.ts';
import { Operator } from './operator.ts';
import { localAddressFor } from './peer-connection.ts';
import { WebSocketTransport } from './raft-transport.ts';
import { rememberRemoval, removalFile } from './removal.ts';
import { Renewal } from './renewal.ts';
import { Roster } from './roster.ts';
import { authorityOf, careForMembers, careForSelf, keepAuthority, listCertificate } from './self-care.ts';
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
  /** Its records are others than those of the active node. */
  readonly onDifference: () => void;
  /** This node is no member any more. */
  readonly onRemoved: () => void;
  readonly observer: NodeObserver;
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

/** How long the active node may take to open its state for a snapshot. */
const snapshotHeadMs = 10_000;
/** Summing up all records is work: not more often than this. */
const checkAgainMs = 60_000;
const canaryIntervalMs = 5000;

/** What a node does together with others: their messages, echoes, forwarded requests, and the list of members. */
export class Cluster {
  readonly roster: Roster;
  readonly heartbeats: Heartbeats;
  readonly standbys: Standbys;
  readonly #host: ClusterHost;
  readonly #client: ClusterClient;
  readonly #timers: NodeJS.Timeout[] = [];
  #removed: boolean;
  #transport: WebSocketTransport | undefined;
  #listener: ClusterListener | undefined;
  #forwarded: Forwarded | undefined;
  #calls: ReturnType<typeof clusterCalls> | undefined;
  #own: Own | undefined;
  #changes: Changes | undefined;
  #echoing: Echoing | undefined;
  #forwarder: Forwarder | undefined;
  #applied: Applied | undefined;
  #canary: Canary | undefined;
  #joinDesk: JoinDesk | undefined;
  #agreement: Agreement | undefined;
  #operator: Operator | undefined;
  #autopilot: Autopilot | undefined;
  #renewal: Renewal | undefined;
  #toldOfInterval = false;
  #checking = false;
  #leading = false;
  #caring = false;
  #selfCare: Promise<void> | undefined;
  /** The attempt to open the cluster port. */
  #opening: Promise<void> | undefined;
  /** Ends what waits for time to pass. */
  readonly #closing = new AbortController();

  private constructor(host: ClusterHost, identity: NodeIdentity | undefined, removed: boolean) {
    const { cluster_heartbeat_interval: intervalMs } = host.config;
    this.#host = host;
    this.roster = new Roster(host.directory, identity);
    this.#removed = removed;
    this.heartbeats = new Heartbeats(intervalMs, performance.now());
    this.#client = new ClusterClient({
      identity: () => this.roster.requireIdentity(),
      member: (id) => this.roster.member(id),
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

  /** The member that is believed to be active; never this node. */
  get activeMember(): Member | undefined {
    const leader = this.#own?.storage.driver.status().leader;
    return leader === undefined || leader === this.#own?.nodeId ? undefined : this.roster.member(leader);
  }

  get forwarder(): Forwarder | undefined {
    return this.#forwarder;
  }

  /** Only the leader changes members. */
  get changes(): Changes {
    if (this.#changes === undefined) throw new StoreError('not_leader', 'this node does not lead');
    return this.#changes;
  }

  /** What an operator changes about the members; only on the leader does it succeed. */
  get operator(): Operator | undefined {
    return this.#operator;
  }

  get autopilot(): Autopilot | undefined {
    return this.#autopilot;
  }

  get joinDesk(): JoinDesk | undefined {
    return this.#joinDesk;
  }

  /** Whether its records were shown to be those of the active node. */
  get agrees(): boolean {
    return this.#agreement?.verdict === 'same';
  }

  /** Whether they were shown to be others: it serves nothing from them until its next start, as the active node neither. */
  get differs(): boolean {
    return this.#agreement?.verdict === 'different';
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
      link: {
        open: async (from, index, signal) => {
          const answer = await this.#client.request(from, {
            method: 'GET',
            path: `/cluster/snapshot?index=${index}`,
            signal,
            timeoutMs: snapshotHeadMs,
          });
          if (answer.status === 200) return answer.body;
          answer.body.destroy();
          throw new Error(`node ${from} answered the request for a snapshot with status ${answer.status}`);
        },
      },
      onFetchFailed: (error) =>
        this.#host.log.warn({ reason: error.message }, 'a snapshot did not arrive; it is asked for again'),
      peers: ({ nodeId, snapshots, random }) => {
        this.#transport = new WebSocketTransport({
          self: nodeId,
          identity: () => this.roster.requireIdentity(),
          localAddress: this.#localAddress,
          onRemoved: () => this.#removedByNotice(),
          onForeignVersion: (peer) =>
            this.#host.log.error({ peer }, 'that node reads no frames of this version: upgrade by one release at a time'),
        });
        return { transport: this.#transport, snapshots, random };
      },
      onRemoved: (atIndex) => void this.#endMembership(atIndex),
      removedAt: (id) => this.roster.removedAt(id),
      promotes: (id) => this.roster.member(id)?.nonVoter === false,
    };
  }

  /** The configuration in force, or the newest committed one, has changed. */
  configurationChanged(): void {
    this.roster.configured();
    this.#followMembers();
  }

  #followMembers(): void {
    this.#transport?.members(this.#peers);
    this.#client.recheck();
    this.#listener?.recheck();
  }

  /** Role, term, leader or readiness has changed. */
  statusChanged({ ready }: DriverStatus): void {
    this.#forwarder?.leaderChanged();
    if (ready && !this.#leading) {
      this.standbys.leads(() => this.roster.served.filter((id) => id !== this.#own?.nodeId));
      this.#autopilot?.begins();
      void this.care();
    }
    if (!ready) this.#joinDesk?.clear();
    // Until now it was in contact with the active node: with itself.
    if (this.#leading && !ready) this.heartbeats.restart(performance.now());
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
    this.roster.follow(storage);
    this.#changes = new Changes(storage.driver, this.#pause);
    this.#applied = new Applied(storage.replica);
    this.#canary = new Canary(barrier.store);
    const applied = this.#applied;
    this.#calls = clusterCalls({
      storage,
      applied,
      standbys: this.standbys,
      isActive: this.#host.isActive,
      intervalMs: this.#host.config.cluster_heartbeat_interval,
      committed: () => (this.#removed ? undefined : this.roster.committed),
      renewal: {
        clusterId,
        authority: () => {
          if (!this.#host.isActive()) throw new StoreError('not_leader', 'this node is not the active one');
          return authorityOf(barrier.store, clusterId);
        },
        list: (node, fingerprint) => listCertificate(this.changes, node, fingerprint),
        now: () => new Date(),
      },
      keepAuthority: (authority) => this.#keepAuthority(authority),
      onDifference: () => void this.#checkSelf(),
    });
    this.#joinDesk = new JoinDesk({
      wrap: (exchanged) => barrier.wrapForJoin(exchanged),
      cluster: async () => ({ id: clusterId, authority: (await authorityOf(barrier.store, clusterId)).certificate }),
      admit: async (joiner) => {
        await this.#careForSelf(); // a joiner lets in whom its first member list names: this node has to stand there
        return admit(
          { store: barrier.store, changes: this.changes, clusterId, self: nodeId, peers: () => storage.driver.peers() },
          joiner,
        );
      },
      nowMs: () => performance.now(),
      randomBytes,
    });
    const { changes, standbys, roster } = this;
    this.#operator = new Operator({ driver: storage.driver, changes, standbys });
    this.#autopilot = new Autopilot({
      storage,
      roster,
      store: barrier.store,
      operator: this.#operator,
      log: this.#host.log,
    });
    const leader = () => {
      const { leader: id, term } = storage.driver.status();
      return id === 0 || id === nodeId ? undefined : { id, term };
    };
    this.#renewal = new Renewal({
      client: this.#client,
      identity: () => roster.identity,
      leader: () => leader()?.id,
      become: (identity) => this.#become(identity),
      now: Date.now,
    });
    this.#forwarder = new Forwarder({
      client: this.#client,
      clusterId,
      leader,
      reached: (index, withinMs) => applied.reached(index, withinMs),
      self: this.#host.config.node_id,
    });
    const agreement = new Agreement({
      appliedIndex: () => applied.index,
      digestAt: (index) => storage.machine.digestAt(index),
      onDifference: (index) => {
        this.#host.log.error({ index }, 'the records of this node are others than those of the active node: it serves nothing');
        this.#host.onDifference();
        void this.#checkSelf();
      },
    });
    this.#agreement = agreement;
    this.#echoing = new Echoing({
      client: this.#client,
      onEcho: (to, ms) => {
        const peer = this.roster.member(to)?.name ?? '';
        if (ms === undefined) this.#host.observer.echoFailed(peer);
        else this.#host.observer.echoed(peer, ms);
      },
      heartbeats: this.heartbeats,
      intervalMs: this.#host.config.cluster_heartbeat_interval,
      target: () => this.#echoTarget(),
      news: () => this.#news(),
      onRemoved: () => this.#removedByNotice(),
      onInterval: (theirsMs) => this.#otherInterval(theirsMs),
      onMembers: (from, told) => {
        if (storage.driver.status().leader === 0 && roster.told(from, told)) this.#followMembers();
      },
      onState: (state) => agreement.told(state),
    });
    this.#transport?.members(this.#peers);
    if (this.roster.identity !== undefined) await this.#listen();
    if (this.#removed) return;
    this.#echoing.start();
    this.#timers.push(setInterval(() => void this.care(), canaryIntervalMs));
  }

  /** What the active node does for the cluster, at once when it becomes active and every few seconds from then on; others for themselves. */
  async care(): Promise<void> {
    if (this.#caring || this.#own === undefined) return;
    void this.#listenAgain();
    if (!this.#host.isActive()) return this.#renew();
    this.#caring = true;
    try {
      await this.#careForSelf();
      await careForMembers(this.changes, (id) => this.standbys.news(id));
      await this.#autopilot?.care();
      if (this.roster.members.length > 1) await this.#canary?.write(Date.now());
    } catch (error) {
      this.#host.log.warn({ reason: reasonOf(error) }, 'the care for the members was left for the next round');
    } finally {
      this.#caring = false;
    }
  }

  /** One at a time: where there is no certificate yet, two would make one each. */
  #careForSelf(): Promise<void> {
    if (this.#own === undefined) return Promise.resolve();
    this.#selfCare ??= careForSelf(this.#careParts(this.#own)).finally(() => {
      this.#selfCare = undefined;
    });
    return this.#selfCare;
  }

  async #keepAuthority(authority: ClusterAuthority): Promise<void> {
    if (this.#own !== undefined) await keepAuthority(this.#own.barrier.store, this.roster.requireIdentity().authority, authority);
  }

  /** The active node shall write the authority again, this one or another. @throws ClusterCallError, StoreError */
  async restoreAuthority(authority: ClusterAuthority): Promise<void> {
    if (this.#host.isActive()) return this.#keepAuthority(authority);
    const { activeMember } = this;
    if (activeMember === undefined) throw new StoreError('not_leader', 'no active node is known');
    const { status } = await this.#client.post(activeMember.id, authorityCall, { json: authority, timeoutMs: confirmWithinMs });
    if (status !== 200) throw new StoreError('not_leader', `the active node did not take the authority: status ${status}`);
  }

  async #renew(): Promise<void> {
    if (this.#removed) return;
    try {
      if (await this.#renewal?.renewIfDue()) this.#host.log.info('the certificate of this node was renewed');
    } catch (error) {
      this.#host.log.warn({ reason: reasonOf(error) }, 'the certificate of this node is not renewed yet');
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

  /** Not who had this node's address before it: a node that follows the log from its beginning meets its own past. */
  get #peers(): readonly Member[] {
    return this.roster.known.filter(({ clusterAddress }) => clusterAddress !== this.#host.config.cluster_addr);
  }

  get #localAddress(): string | undefined {
    return localAddressFor(this.#listenAddress.host);
  }

  /** A founder becomes one of several while it serves already: its port may be in use, and free later. */
  async #listenAgain(): Promise<void> {
    if (this.#listener !== undefined || this.roster.identity === undefined || this.#closing.signal.aborted) return;
    await this.#listen().catch((error: unknown) =>
      this.#host.log.warn({ reason: reasonOf(error) }, 'the cluster port is not open yet'),
    );
  }

  /** One attempt at a time. @throws StartError */
  #listen(): Promise<void> {
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    const calls = this.#calls;
    if (this.#listener !== undefined || calls === undefined) return;
    const listener = new ClusterListener({
      identity: () => this.roster.requireIdentity(),
      standing: (fingerprint) => this.roster.standing(fingerprint),
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
    if (this.#closing.signal.aborted) return listener.close();
    this.#listener = listener;
    this.#host.log.info({ address: this.#host.config.cluster_addr }, 'the cluster port is open');
  }

  /** What an earlier active node answered lets this one serve for longer than the present one waits for: that ends here. */
  #otherInterval(theirsMs: number | undefined): void {
    if (this.heartbeats.echoes.answeredSentMs !== undefined) this.heartbeats.restart(performance.now());
    if (this.#toldOfInterval) return;
    this.#toldOfInterval = true;
    const { cluster_heartbeat_interval: ownMs } = this.#host.config;
    this.#host.log.error(
      { ownMs, theirsMs },
      'cluster_heartbeat_interval is another than on the active node: this node serves nothing',
    );
  }

  /** The leader; while none is known, the members in turn: one of them may know that this node was removed. */
  #echoTarget(): NodeId | undefined {
    if (this.#own === undefined || this.#removed || this.roster.identity === undefined) return undefined;
    const { nodeId, storage } = this.#own;
    const { leader } = storage.driver.status();
    if (leader !== 0) return leader === nodeId ? undefined : leader;
    const others = this.roster.known.filter(({ id }) => id !== nodeId);
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
      intervalMs: config.cluster_heartbeat_interval,
      serves: !sealed && config.performance_standby,
      sealed,
      differs: this.differs,
      version,
      hostname: hostname().slice(0, 255),
    };
  }

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
      identity: () => this.roster.identity,
      become: (identity) => this.#become(identity),
    };
  }

  /** Puts an identity in force: durably, and from the next connection on. */
  async #become(identity: NodeIdentity): Promise<void> {
    await this.roster.become(identity);
    this.#listener?.recheck();
    await this.#listen();
  }

  /** Somebody's records are others: a node whose own sum does not hold any more is damaged, and ends. */
  async #checkSelf(): Promise<void> {
    if (this.#checking || this.#own === undefined) return;
    this.#checking = true;
    try {
      const { sound } = await this.#own.storage.machine.selfCheck();
      this.#host.log.error({ sound }, 'nodes have different records at one index; this one has summed up its own');
    } catch (error) {
      this.#host.log.error({ reason: reasonOf(error) }, 'the own records could not be summed up');
    } finally {
      setTimeout(() => {
        this.#checking = false;
      }, checkAgainMs).unref();
    }
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
