import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type DriverLimits, type NodeId, soleVoter, type Term } from '@transitd/raft-core';
import { createNode } from '@transitd/storage-fsm';
import type { Address, MemberStatus, OrderKind, Orders, Report } from './orders.ts';

const memberIds: readonly NodeId[] = [1, 2, 3];

/** A leading member, and the time at which this process heard that its first write was committed. */
export interface Lead {
  readonly member: Member;
  readonly term: Term;
  readonly atMs: number;
}

/** One process of a member, from its fork to its end. */
export class Member {
  readonly id: NodeId;
  readonly #process: ChildProcess;
  readonly #ports = Promise.withResolvers<Omit<Address, 'id'>>();
  readonly #asked = new Map<number, PromiseWithResolvers<unknown>>();
  #orders = 0;

  constructor(id: NodeId, options: readonly string[], leads: (lead: Lead) => void) {
    this.id = id;
    this.#process = fork(join(import.meta.dirname, 'member.ts'), options, {
      execArgv: ['--max-semi-space-size=8'], // as a node is started
      serialization: 'advanced',
    });
    this.#process.on('message', (report: Report) => {
      if (report.kind === 'answer') this.#asked.get(report.number)?.resolve(report.answer);
      else if (report.kind === 'listening') this.#ports.resolve(report);
      else if (report.kind === 'leads') leads({ member: this, term: report.term, atMs: performance.now() });
      else console.error(`member ${id} failed: ${report.reason}`);
    });
    this.#process.on('exit', () => {
      const ended = new Error(`member ${id} has ended`);
      this.#ports.reject(ended);
      for (const { reject } of this.#asked.values()) reject(ended);
    });
  }

  get address(): Promise<Address> {
    return this.#ports.promise.then(({ port, snapshotPort }) => ({ id: this.id, port, snapshotPort }));
  }

  /** Rejects if the member ends before it answers. */
  async ask<K extends OrderKind>(kind: K, ask: Orders[K]['ask']): Promise<Orders[K]['answer']> {
    this.#orders += 1;
    const number = this.#orders;
    const waiting = Promise.withResolvers<unknown>();
    this.#asked.set(number, waiting);
    this.#process.send({ kind, number, ask });
    const answer = await waiting.promise.finally(() => this.#asked.delete(number));
    return answer as Orders[K]['answer']; // the member answers each kind of order with the type that `Orders` names
  }

  /** kill -9. */
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
  }

  /** kill -9 without waiting, when this process is about to end. */
  killNow(): void {
    this.#process.kill('SIGKILL');
  }
}

export interface ClusterOptions {
  readonly limits?: Partial<DriverLimits>;
  /** Whether members keep records as a server does, or only the log. */
  readonly records?: boolean;
}

/** Three voters with logs in one temporary directory, which is removed when the cluster ends. */
export class Cluster {
  readonly #directory = mkdtempSync(join(tmpdir(), 'transitd-bench-raft-'));
  readonly #limits: Partial<DriverLimits>;
  readonly #holds: readonly string[];
  readonly #members = new Map<NodeId, Member>();
  readonly #removeAll = (): void => {
    for (const member of this.#members.values()) member.killNow();
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  };
  #newest: Lead | undefined;
  #waiting: { readonly above: Term; readonly resolve: (lead: Lead) => void }[] = [];

  private constructor({ limits = {}, records = false }: ClusterOptions) {
    this.#limits = limits;
    this.#holds = records ? ['records'] : [];
    process.once('exit', this.#removeAll);
  }

  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const cluster = new Cluster(options);
    const base = { index: 0, term: 0, conf: { ...soleVoter(1), voters: memberIds }, confIndex: 0 };
    for (const nodeId of memberIds) await createNode(cluster.#pathOf(nodeId), { clusterId: 'bench', nodeId, base });
    await Promise.all(memberIds.map((id) => cluster.#fork(id).address));
    await Promise.all([...cluster.#members.values()].map((member) => cluster.#begin(member)));
    return cluster;
  }

  get members(): readonly Member[] {
    return [...this.#members.values()];
  }

  /** Resolves with a leader whose term is greater than `above`, once the first write of that term is committed. */
  leader({ above = 0 }: { readonly above?: Term } = {}): Promise<Lead> {
    const newest = this.#newest;
    if (newest !== undefined && newest.term > above) return Promise.resolve(newest);
    return new Promise((resolve) => this.#waiting.push({ above, resolve }));
  }

  /** Starts the member again with the log that it has on disk. */
  async restart({ id }: Member): Promise<Member> {
    const member = this.#fork(id);
    const address = await member.address;
    for (const other of this.members) if (other.id !== id) await other.ask('peer', address);
    await this.#begin(member);
    return member;
  }

  /** Resolves when each of these members has reported to the leader that it has the whole log. */
  async settled(followers: readonly Member[] = this.members): Promise<{ readonly lead: Lead; readonly status: MemberStatus }> {
    for (;;) {
      const lead = await this.leader();
      const status = await lead.member.ask('status', null);
      const upToDate = status.peers.filter(({ match, active }) => active && match === status.lastIndex).map(({ id }) => id);
      const isSettled = followers.every(({ id }) => id === lead.member.id || upToDate.includes(id));
      if (status.role === 'leader' && isSettled && status.appliedIndex === status.lastIndex) return { lead, status };
      await delay(20);
    }
  }

  async end(): Promise<void> {
    process.off('exit', this.#removeAll);
    await Promise.all(this.members.map((member) => member.kill()));
    this.#removeAll();
  }

  #fork(id: NodeId): Member {
    const member = new Member(id, [this.#pathOf(id), ...this.#holds], (lead) => this.#leads(lead));
    this.#members.set(id, member);
    return member;
  }

  async #begin(member: Member): Promise<void> {
    const others = this.members.filter(({ id }) => id !== member.id);
    const peers = await Promise.all(others.map(({ address }) => address));
    await member.ask('start', { peers, limits: this.#limits });
  }

  #leads(lead: Lead): void {
    if (lead.term > (this.#newest?.term ?? 0)) this.#newest = lead;
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ above }) => lead.term <= above);
    for (const { above, resolve } of waiting) if (lead.term > above) resolve(lead);
  }

  #pathOf(id: NodeId): string {
    return join(this.#directory, `member-${id}`);
  }
}
