import {
  type Engine,
  type Forwarder,
  historyOf,
  type MemberEvents,
  type Peers,
  placeOf,
  type Reached,
  type ReadRole,
  reachedState,
  readRoleOf,
  replicationModes,
  serviceIndexOf,
} from '@transitd/cluster';
import { freshForIntervals, type ReplicationMode } from '@transitd/health';
import { type Grant, isHeld, type LogIndex, type Term } from '@transitd/raft-core';
import {
  acceptsWrites,
  positionOf,
  type ReplicationRole,
  type ReplicationState,
  type ServiceIndex,
  StoreError,
} from '@transitd/storage-fsm';
import type { NodeHost } from './node-host.ts';
import type { ServingRole } from './serving-role.ts';

/** The replication of a cluster, by the state that one node has applied. */
interface ReplicationStatus {
  readonly mode: ReplicationMode;
  readonly role: ReplicationRole;
  readonly set: string;
  /** Number of the epoch; undefined on a secondary that has not received a state. */
  readonly epoch: number | undefined;
  /** The service index of the state. */
  readonly position: LogIndex;
  /** The digest of the replicated records; undefined while it is not known. */
  readonly digest: bigint | undefined;
}

/** Longest time between two checks while a request waits for a leader. */
const checkMs = 10;

/** Maximum time for which a request waits until this node has the state that its caller has seen on another node (decision 25). */
const reachedWithinMs = 1000;

type RespondingHost = Pick<NodeHost, 'config' | 'observer'>;

interface RespondingMember {
  readonly role: ServingRole;
  readonly engine: Engine;
  readonly peers: Peers;
  readonly events: Pick<MemberEvents, 'on'>;
}

/** Whether a node may respond to a request, and from which state of the cluster; without what only its own parts ask for. */
export type Eligibility = Omit<
  ReadEligibility,
  'activeForCertain' | 'appliedSentMs' | 'clockJumpedMs' | 'heartbeat' | 'mayServeInGateways'
>;

/** Decides whether this member may respond to a request, and from which state of the cluster; forwards the request if not. */
export class ReadEligibility {
  readonly #host: RespondingHost;
  readonly #member: RespondingMember;
  /** The next check of the requests that wait for a leader; undefined if none waits. */
  #check: (PromiseWithResolvers<void> & { readonly timer: NodeJS.Timeout }) | undefined;

  constructor(host: RespondingHost, member: RespondingMember) {
    this.#host = host;
    this.#member = member;
    member.events.on('status', () => this.#checkNow());
  }

  /** The state of replication between clusters that this node has applied; undefined if its cluster never took part in it. */
  get replication(): ReplicationState | undefined {
    return this.#member.engine.replication;
  }

  /** The replication between clusters by the state of this node; undefined if its cluster takes no part in it. */
  get replicationStatus(): ReplicationStatus | undefined {
    const { engine } = this.#member;
    const state = this.replication;
    if (state === undefined || state.role === 'disabled') return undefined;
    const position = positionOf(state, engine.status().appliedIndex);
    return {
      ...{ mode: replicationModes(state).disasterRecovery, role: state.role, set: state.set },
      ...{ epoch: state.epochs.at(-1)?.number, position, digest: engine.scopeDigestAt(position) },
    };
  }

  /** True while the cluster follows another one, or was demoted or superseded: then it serves only a few operations. */
  get isSecondary(): boolean {
    return !acceptsWrites(this.replication);
  }

  /** Whether this node leads, has applied an entry of its term, and may serve. */
  get active(): boolean {
    return this.#member.role.isActive;
  }

  /** Whether gateways may answer from the applied state while this node holds a lease or a fresh heartbeat. */
  get mayServeInGateways(): boolean {
    return this.#member.role.mayServe && !this.isSecondary;
  }

  /** Time of the last jump of a clock, by the monotonic clock. */
  get clockJumpedMs(): number {
    return this.#member.engine.clockJumpedMs();
  }

  /**
   * Whether this node is certainly active. False after a pause of the process, until leadership is confirmed: another node may lead by
   * then.
   */
  get activeForCertain(): boolean {
    return this.active && this.#member.engine.isAwake();
  }

  /**
   * How this node may respond from its own state in this event-loop turn: as the active node under a lease, or as a performance standby
   * with a fresh heartbeat (decision 50); undefined if it may not.
   */
  get readRole(): ReadRole | undefined {
    const { engine, role } = this.#member;
    if (!role.mayServe) return undefined;
    const { ready, appliedIndex } = engine.status();
    const clockJumpedMs = engine.clockJumpedMs();
    const [lease, heartbeat] = [ready ? engine.lease() : undefined, this.#heartbeatWith(appliedIndex)];
    return readRoleOf({ lease, heartbeat, clockJumpedMs, nowMs: performance.now() });
  }

  /**
   * The newest answered heartbeat whose commit index this node has applied, and until when it permits reads if no clock has jumped since;
   * undefined if this node serves nothing as a performance standby.
   */
  get heartbeat(): Grant | undefined {
    return this.#heartbeatWith(this.#member.engine.status().appliedIndex);
  }

  #heartbeatWith(appliedIndex: LogIndex): Grant | undefined {
    const { role, peers } = this.#member;
    const { config } = this.#host;
    if (!config.performance_standby || role.verdict !== 'same') return undefined;
    const sentMs = peers.heartbeats.appliedSentMs(appliedIndex);
    if (sentMs === undefined) return undefined;
    return { sentMs, endMs: Math.min(sentMs + freshForIntervals * config.cluster_heartbeat_interval, peers.awaitedUntilMs) };
  }

  /** Send time of the heartbeat that permits this node to answer reads as a performance standby; undefined if none does. */
  get appliedSentMs(): number | undefined {
    const { heartbeat } = this;
    const clockJumpedMs = this.#member.engine.clockJumpedMs();
    return isHeld(heartbeat, { clockJumpedMs, nowMs: performance.now() }) ? heartbeat.sentMs : undefined;
  }

  /**
   * Asks a quorum whether this node still leads. If so, its state includes everything that was acknowledged before the call.
   * @throws StoreError `busy` while the state store hangs: committed entries are not applied then, and they may revoke rights
   */
  async confirmLeadership(): Promise<boolean> {
    try {
      await this.#member.engine.replica.fresh();
      return this.active;
    } catch (error) {
      if (error instanceof StoreError && error.code !== 'busy') return false;
      throw error;
    }
  }

  /**
   * Whether this node believes that it leads, ready or not, or is being elected. A node is being elected when a quorum would vote for it,
   * or the former leader has transferred leadership to it. In all these cases there is no other node to forward requests to.
   */
  get mayLead(): boolean {
    const { role, engine } = this.#member;
    return role.mayServe && ['leader', 'candidate'].includes(engine.status().role);
  }

  /** Whether this node is transferring its leadership, so that it takes no changes. */
  get isTransferring(): boolean {
    return this.#member.engine.status().transferTo !== undefined;
  }

  /**
   * Waits up to a second for the end of an election of this node, or until it is ready after one. Returns whether it is the active node, by
   * its lease or confirmed by a quorum.
   */
  async becomesActive(): Promise<boolean> {
    for (const endMs = performance.now() + reachedWithinMs; this.mayLead && performance.now() < endMs; await this.#nextCheck())
      if (this.active) return this.readRole === 'active' || (await this.confirmLeadership());
    return false;
  }

  /** Returns whether a term after `before` has an active node, or gets one within the time of an election and a second. */
  async hasActiveNodeAfter(before: Term): Promise<boolean> {
    for (const endMs = performance.now() + this.#failoverMs; performance.now() < endMs; await this.#nextCheck())
      if (this.#hasActiveNodeAfter(before)) return true;
    return false;
  }

  /**
   * Returns whether an active node answers again before a failover should have ended: the time of an election and a second after this
   * node's last contact to an active node could have ended. A cluster that stays without an active node for longer lets no request wait.
   * @param before - the term of the leader that did not answer; 0 if no leader was known
   */
  async hasActiveNodeAgain(before: Term): Promise<boolean> {
    const startMs = performance.now();
    for (; ; await this.#nextCheck()) {
      const { peers, role } = this.#member;
      if (!role.mayServe || !peers.canForward) return false;
      const { answeredSentMs = Number.NEGATIVE_INFINITY, sinceMs, intervalMs } = peers.heartbeats.times;
      if (answeredSentMs > startMs || this.#hasActiveNodeAfter(before)) return true;
      if (performance.now() > Math.max(answeredSentMs, sinceMs) + intervalMs + this.#failoverMs) return false;
    }
  }

  /** Resolves with the next change of this node's status, but soon even without one: a heartbeat may have been answered. */
  #nextCheck(): Promise<void> {
    this.#check ??= { ...Promise.withResolvers<void>(), timer: setTimeout(() => this.#checkNow(), checkMs) };
    return this.#check.promise;
  }

  #checkNow(): void {
    clearTimeout(this.#check?.timer);
    this.#check?.resolve();
    this.#check = undefined;
  }

  #hasActiveNodeAfter(before: Term): boolean {
    const { term, leader, nodeId } = this.#member.engine.status();
    if (term <= before) return false;
    const isElsewhere = leader !== 0 && leader !== nodeId;
    return isElsewhere || this.active;
  }

  /** The time after which a cluster with a quorum has an active node again. */
  get #failoverMs(): number {
    return this.#member.engine.electedWithinMs + reachedWithinMs;
  }

  /** Returns whether this node has applied a state that contains the index; waits for it up to a second if `waits`. */
  reached(wanted: ServiceIndex, { waits }: { readonly waits: boolean }): Promise<Reached> {
    return reachedState(wanted, waits ? reachedWithinMs : 0, this.#member.engine);
  }

  /** Returns whether the history of this cluster does not contain the index of a former primary, as far as this node has applied it. */
  hasLost(wanted: ServiceIndex): boolean {
    return placeOf(wanted, historyOf(this.#member.engine)).kind === 'lost';
  }

  /** The index that identifies the state of this node. */
  get serviceIndex(): ServiceIndex | undefined {
    const { engine } = this.#member;
    return serviceIndexOf(engine.status().appliedIndex, historyOf(engine));
  }

  /** Whether this node can forward requests to another node. */
  get canForward(): boolean {
    return this.#member.peers.canForward;
  }

  /** Forwards a request to the active node. @see Forwarder */
  async forward(...[req, res, options]: Parameters<Forwarder['forward']>): Promise<number> {
    const { peers } = this.#member;
    const { observer } = this.#host;
    if (!peers.canForward) throw notActive(); // that is no failure of another node
    const startMs = performance.now();
    try {
      const status = await peers.forwarder.forward(req, res, options);
      observer.forwarded(performance.now() - startMs);
      return status;
    } catch (error) {
      observer.forwardFailed();
      throw error;
    }
  }

  /**
   * Waits until no node serves a state from before the change that a request made. Does not wait for a change that only `adds`.
   * @returns the index that identifies the state with the change
   */
  async waitUntilInForce({ adds }: { readonly adds: boolean }): Promise<ServiceIndex | undefined> {
    const { engine, peers } = this.#member;
    const { appliedIndex } = engine.status();
    const index = serviceIndexOf(appliedIndex, historyOf(engine));
    if (!adds) await peers.standbys.confirmed(appliedIndex);
    return index;
  }
}

export const notActive = (): StoreError => new StoreError('not_leader', 'this node is not the active one');

/** Of a node that belongs to no cluster: it has no state to answer from, and no other node to forward to. */
export const noEligibility: Eligibility = {
  replication: undefined,
  replicationStatus: undefined,
  isSecondary: false,
  active: false,
  readRole: undefined,
  confirmLeadership: async () => false,
  mayLead: false,
  isTransferring: false,
  becomesActive: async () => false,
  hasActiveNodeAfter: async () => false,
  hasActiveNodeAgain: async () => false,
  reached: async () => 'behind',
  hasLost: () => false,
  serviceIndex: undefined,
  canForward: false,
  forward: () => Promise.reject(notActive()),
  waitUntilInForce: async () => undefined,
};
