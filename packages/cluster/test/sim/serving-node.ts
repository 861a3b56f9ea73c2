import { isFresh } from '@transitd/health';
import { type LogIndex, membersOf, type NodeId } from '@transitd/raft-core';
import type { Incarnation, Member } from '@transitd/raft-core/sim';
import { confirmWithinMs } from '../../src/calls.ts';
import type { Heartbeats } from '../../src/standbys/heartbeats.ts';
import type { StandbyNews, Standbys } from '../../src/standbys/standbys.ts';

/** The decisions under test, or copies of them with a fault. */
export interface Decisions {
  readonly Standbys: typeof Standbys;
  readonly Heartbeats: typeof Heartbeats;
  /** An echo is answered only by a node that is certain to lead. */
  readonly echoNeedsLead: boolean;
}

/** The world outside of a node's process. */
export interface ServingWorld {
  readonly intervalMs: number;
  readonly decisions: Decisions;
  /** Asks another node; rejects when no answer has come within the time. */
  call<Answer>(
    from: ServingNode,
    to: NodeId,
    ask: { readonly timeoutMs: number; answer(node: ServingNode): Promise<Answer> },
  ): Promise<Answer>;
}

const lookMs = 50;
const confirmLookMs = 20;
const replication = { performance: 'disabled', disasterRecovery: 'disabled' } as const;

/** One run of a node as the others see it on the cluster port: the real decisions on the simulated clock, consensus and network. */
export class ServingNode {
  readonly member: Member;
  readonly run: Incarnation;
  readonly standbys: Standbys;
  readonly #world: ServingWorld;
  readonly #heartbeats: Heartbeats;
  /** The term that this node leads, ready to serve. */
  #leads: number | undefined;
  #seen = '';
  #serves = false;
  #echoSender = false;

  constructor(world: ServingWorld, member: Member, run: Incarnation) {
    const { decisions, intervalMs } = world;
    this.#world = world;
    this.member = member;
    this.run = run;
    this.#heartbeats = new decisions.Heartbeats(intervalMs, run.process.now());
    this.standbys = new decisions.Standbys({
      servesForMs: 2 * intervalMs,
      nowMs: () => run.process.now(),
      pause: (ms) => this.#pause(ms),
      ask: (id, index) =>
        world.call(this, id, { timeoutMs: confirmWithinMs + intervalMs, answer: (node) => node.#confirm(index) }),
    });
  }

  get id(): NodeId {
    return this.member.id;
  }

  /** Leads, has applied an entry of its term, and is not sealed. */
  get isActive(): boolean {
    return this.#serves && this.#leads !== undefined;
  }

  start(): void {
    const { process } = this.run;
    process.every(lookMs, () => this.look());
    process.every(this.#world.intervalMs, () => void this.#echo());
    process.run(() => this.look());
  }

  /** Takes in what consensus and the operator have changed. */
  look(): void {
    const { host, machine, process } = this.run;
    const { role, leader, term, termBefore = term, termStartIndex, conf } = host.consensus();
    const isReady = role === 'leader' && termStartIndex !== undefined && machine.applied >= termStartIndex;
    const serves = this.member.fitness !== 'sealed';
    if (serves !== this.#serves) this.#heartbeats.restart(process.now());
    this.#serves = serves;
    const seen = `${isReady} ${leader} ${term}`;
    if (seen === this.#seen) return;
    this.#seen = seen;
    if (leader !== 0 && leader !== this.id) this.standbys.follows(leader, term);
    if (this.#leads !== undefined && (!isReady || this.#leads !== term)) {
      this.#heartbeats.restart(process.now());
      this.#leads = undefined;
    }
    if (isReady && this.#leads === undefined) {
      const others = (): readonly NodeId[] =>
        [...membersOf(host.consensus().conf), ...machine.removed.keys()].filter((id) => id !== this.id);
      this.standbys.leads(others, termBefore);
      this.#leads = term;
    }
    if (membersOf(conf).has(this.id)) void this.#echo();
  }

  /** By what a request may be answered from this node's state right now. */
  memberState(): 'active' | 'standby' | undefined {
    this.look();
    const { host, machine, process } = this.run;
    if (!this.#serves) return undefined;
    if (this.isActive && host.leaseRead()) return 'active';
    const sentMs = this.#heartbeats.appliedSentMs(machine.applied);
    return sentMs !== undefined && isFresh(sentMs, this.#world.intervalMs, process.now()) ? 'standby' : undefined;
  }

  async #echo(): Promise<void> {
    const { host, machine, process } = this.run;
    const { leader } = host.consensus();
    if (this.#echoSender || leader === 0 || leader === this.id) return;
    this.#echoSender = true;
    const { intervalMs } = this.#world;
    const sentMs = process.now();
    const news: StandbyNews = {
      appliedIndex: machine.applied,
      serves: this.#serves,
      sealed: !this.#serves,
      version: '',
      hostname: '',
      apiAddress: '',
      clusterAddress: '',
      certificate: '',
    };
    try {
      const commitIndex = await this.#world.call(this, leader, {
        timeoutMs: intervalMs,
        answer: (node) => node.#answerEcho(this.id, news),
      });
      const received = { sentMs, receivedMs: process.now(), receivedUtcMs: 0 };
      this.#heartbeats.answered({ commitIndex, utcMs: 0, replication }, received);
    } catch {
      this.#heartbeats.failed({ sentMs, nowMs: process.now() });
    } finally {
      this.#echoSender = false;
    }
  }

  async #answerEcho(from: NodeId, news: StandbyNews): Promise<LogIndex> {
    this.look();
    const { host } = this.run;
    const isCertain = this.isActive && (!this.#world.decisions.echoNeedsLead || host.leaseRead() || (await this.#isLeading()));
    if (!isCertain) throw new Error('this node is not the active one');
    this.standbys.heard(from, news);
    return host.consensus().commitIndex;
  }

  async #isLeading(): Promise<boolean> {
    const isRead = await new Promise<boolean>((resolve) => this.run.host.readIndex(({ kind }) => resolve(kind === 'readable')));
    this.look();
    return isRead && this.isActive;
  }

  async #confirm(index: LogIndex): Promise<LogIndex> {
    const { machine, process } = this.run;
    const untilMs = process.now() + confirmWithinMs;
    while (machine.applied < index && process.now() < untilMs) await this.#pause(confirmLookMs);
    return machine.applied;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.run.process.after(Math.max(0, ms), resolve));
  }
}
