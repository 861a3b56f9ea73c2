import { freshForIntervals } from '@transitd/health';
import { type Grant, type LogIndex, membersOf, type NodeId } from '@transitd/raft-core';
import type { Incarnation, Member } from '@transitd/raft-sim';
import { confirmWithinMs } from '../../src/node-calls.ts';
import { MemberEvents } from '../../src/ports/member-events.ts';
import type { ReadRole, readRoleOf } from '../../src/ports/read-role.ts';
import type { Heartbeats } from '../../src/standbys/heartbeats.ts';
import { PermissionClock } from '../../src/standbys/permission-clock.ts';
import type { StandbyReport, Standbys } from '../../src/standbys/standbys.ts';

/** The decisions under test, or copies of them with a fault. */
export interface Decisions {
  readonly Standbys: typeof Standbys;
  readonly Heartbeats: typeof Heartbeats;
  readonly readRoleOf: typeof readRoleOf;
  /** Only a node that has confirmed its leadership answers a heartbeat. */
  readonly heartbeatNeedsLeadership: boolean;
}

/** The environment of a node's process. */
export interface ServingWorld {
  readonly intervalMs: number;
  readonly decisions: Decisions;
  /** Calls another node; rejects when no answer arrives within the time. */
  call<Answer>(
    from: ServingNode,
    to: NodeId,
    ask: { readonly timeoutMs: number; answer(node: ServingNode): Promise<Answer> },
  ): Promise<Answer>;
}

const checkMs = 50;
const confirmPollMs = 20;
const replication = { performance: 'disabled', disasterRecovery: 'disabled' } as const;

/**
 * One incarnation of a node as its peers see it on the cluster port. Its decisions are the real ones; clock, consensus and network are
 * simulated.
 */
export class ServingNode {
  readonly member: Member;
  readonly run: Incarnation;
  readonly standbys: Standbys;
  readonly #world: ServingWorld;
  readonly #heartbeats: Heartbeats;
  /** The term in which this node leads and is ready to serve. */
  #leadsTerm: number | undefined;
  #observed = '';
  #serves = false;
  #heartbeatInFlight = false;

  constructor(world: ServingWorld, member: Member, run: Incarnation) {
    const { decisions, intervalMs } = world;
    this.#world = world;
    this.member = member;
    this.run = run;
    this.#heartbeats = new decisions.Heartbeats(intervalMs, run.process.now());
    this.standbys = new decisions.Standbys({
      servesForMs: freshForIntervals * intervalMs,
      clock: new PermissionClock(new MemberEvents(), { nowMs: () => run.process.now() }),
      pauses: { pause: (ms) => this.#pause(ms) },
      confirm: (id, index) =>
        world.call(this, id, { timeoutMs: confirmWithinMs + intervalMs, answer: (node) => node.#confirm(index) }),
    });
  }

  get id(): NodeId {
    return this.member.id;
  }

  /** Whether the node leads, has applied an entry of its term, and is not sealed. */
  get isActive(): boolean {
    return this.#serves && this.#leadsTerm !== undefined;
  }

  start(): void {
    const { process } = this.run;
    process.every(checkMs, () => this.update());
    process.every(this.#world.intervalMs, () => void this.#send());
    process.run(() => this.update());
  }

  /** Applies changes of consensus and of the seal. */
  update(): void {
    const { host, machine, process } = this.run;
    const { role, leader, term, termBefore = term, termStartIndex, conf } = host.consensus();
    const isReady = role === 'leader' && termStartIndex !== undefined && machine.applied >= termStartIndex;
    const serves = this.member.fitness !== 'sealed';
    if (serves !== this.#serves) this.#heartbeats.restart(process.now());
    this.#serves = serves;
    const observed = `${isReady} ${leader} ${term}`;
    if (observed === this.#observed) return;
    this.#observed = observed;
    if (leader !== 0 && leader !== this.id) this.standbys.leaderFound(leader, term);
    if (this.#leadsTerm !== undefined && (!isReady || this.#leadsTerm !== term)) {
      this.#heartbeats.restart(process.now());
      this.#leadsTerm = undefined;
    }
    if (isReady && this.#leadsTerm === undefined) {
      // As MembershipList.possiblyServing: a member counts until its removal is applied, and as a removed one afterwards.
      const others = (): readonly NodeId[] =>
        [...membersOf(host.consensus().conf), ...machine.members, ...machine.removed.keys()].filter((id) => id !== this.id);
      this.standbys.termBegins(others, termBefore);
      this.#leadsTerm = term;
    }
    if (membersOf(conf).has(this.id)) void this.#send();
  }

  /** Returns the role in which this node may serve a read now. */
  readRole(): ReadRole | undefined {
    this.update();
    const { host, leaseGuard, process } = this.run;
    if (!this.#serves) return undefined;
    const clockJumpedMs = leaseGuard.jumpedMs();
    const lease = this.isActive ? leaseGuard.lease(host.leaseEndMs()) : undefined;
    const heartbeat = this.#heartbeat();
    return this.#world.decisions.readRoleOf({ lease, heartbeat, clockJumpedMs, nowMs: process.now() });
  }

  #heartbeat(): Grant | undefined {
    const sentMs = this.#heartbeats.appliedSentMs(this.run.machine.applied);
    return sentMs === undefined ? undefined : { sentMs, endMs: sentMs + freshForIntervals * this.#world.intervalMs };
  }

  async #send(): Promise<void> {
    const { host, machine, process } = this.run;
    const { leader } = host.consensus();
    if (this.#heartbeatInFlight || leader === 0 || leader === this.id) return;
    this.#heartbeatInFlight = true;
    const { intervalMs } = this.#world;
    const sentMs = process.now();
    const report: StandbyReport = {
      appliedIndex: machine.applied,
      serves: this.#serves,
      sealed: !this.#serves,
      diskLow: false,
      levels: { oldest: 1, newest: 1 },
      version: '',
      hostname: '',
      apiAddress: '',
      clusterAddress: '',
      certificate: '',
    };
    try {
      const commitIndex = await this.#world.call(this, leader, {
        timeoutMs: intervalMs,
        answer: (node) => node.#answerHeartbeat(this.id, report),
      });
      const received = { sentMs, receivedMs: process.now(), receivedUtcMs: 0 };
      this.#heartbeats.answered({ commitIndex, utcMs: 0, replication }, received);
    } catch {
      this.#heartbeats.failed({ sentMs, nowMs: process.now() });
    } finally {
      this.#heartbeatInFlight = false;
    }
  }

  async #answerHeartbeat(from: NodeId, report: StandbyReport): Promise<LogIndex> {
    this.update();
    const { host, leaseGuard } = this.run;
    const holdsLease = (): boolean => leaseGuard.judge(host.leaseEndMs()) === 'held';
    const isCertain =
      this.isActive && (!this.#world.decisions.heartbeatNeedsLeadership || holdsLease() || (await this.#isLeading()));
    if (!isCertain) throw new Error('this node is not the active one');
    this.standbys.heartbeatReceived(from, report);
    return host.consensus().commitIndex;
  }

  async #isLeading(): Promise<boolean> {
    const isRead = await new Promise<boolean>((resolve) => this.run.host.readIndex(({ kind }) => resolve(kind === 'readable')));
    this.update();
    return isRead && this.isActive;
  }

  async #confirm(index: LogIndex): Promise<LogIndex> {
    const { machine, process } = this.run;
    const untilMs = process.now() + confirmWithinMs;
    while (machine.applied < index && process.now() < untilMs) await this.#pause(confirmPollMs);
    return machine.applied;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.run.process.after(Math.max(0, ms), resolve));
  }
}
