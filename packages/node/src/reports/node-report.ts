import type { OutsideEngine, Peers, ReadRole, ReportSource, StateComparison, Storage } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import type { HealthAnswer } from '@transitd/health';
import { version } from '@transitd/process';
import type { NodeId, Term } from '@transitd/raft-core';
import type { DataDisk } from './data-disk.ts';

/**
 * Work of a node since its process was started. All numbers only grow, so that a reader computes rates and quantiles between two reports;
 * a smaller number means that the process was started again.
 */
export interface WorkFigures {
  readonly requests: number;
  /** Responses with a status of 400 to 499, and of 500 or more. */
  readonly refused: number;
  readonly failed: number;
  /** Transactions proposed by this node and committed. */
  readonly writes: number;
  /** Requests by duration: upper bound in milliseconds, and the number of requests that took at most that long. */
  readonly durations: readonly (readonly [ms: number, requests: number])[];
}

/** How far a node is in the records of its cluster. */
interface Progress {
  readonly role: string;
  readonly term: number;
  /** Name of the leader; empty if none is known. */
  readonly leader: string;
  readonly commit_index: number;
  readonly applied_index: number;
  readonly active_since?: string;
}

/** A leader as a node learned of it. */
export interface LeadershipChange {
  readonly term: Term;
  readonly leader: NodeId;
  /** By the clock of the node. */
  readonly utcMs: number;
}

/** The state of one node, as the node itself reports it. It contains no names of keys, tokens, policies or callers. */
interface NodeReport {
  readonly utc_ms: number;
  readonly uptime_s: number;
  readonly version: string;
  readonly health: {
    readonly code: number;
    readonly sealed: boolean;
    readonly echo_duration_ms: number;
    readonly clock_skew_ms: number;
    /** Age of the newest answered heartbeat; absent on the active node. */
    readonly last_heartbeat_ms?: number;
  };
  /** Whether this node may answer reads from its own state now, and as what; empty if not. */
  readonly serves: 'active' | 'reader' | '';
  /** Absent until the node belongs to a cluster, and on a node whose records are in etcd. */
  readonly raft?: Progress & {
    readonly flushed_index: number;
    readonly last_index: number;
    /** Newest entry that the log no longer holds: a snapshot replaces everything up to it. */
    readonly base_index: number;
    /** Comparison of this node's records with the active node's, which are the reference. */
    readonly state_digest: 'reference' | 'same' | 'different' | 'unknown';
  };
  /** Only on a node whose records are in etcd. The indexes are revisions of etcd, the term is that of the active node's record. */
  readonly etcd?: Progress;
  readonly disk: {
    readonly low: boolean;
    readonly stalled_ms: number;
    /** Median time of recent writes to the log, with their sync; absent if nothing was written. */
    readonly write_ms?: number;
    /** Absent if the file system does not report it in time. */
    readonly free_bytes?: number;
    readonly total_bytes?: number;
  };
  readonly memory_bytes: number;
  readonly work?: WorkFigures;
  /** Oldest first. */
  readonly leaders: readonly { readonly term: number; readonly leader: string; readonly utc_ms: number }[];
}

/** One member as this node sees it, and its report on itself. */
export interface MemberView {
  /** Name of the node. */
  readonly name: string;
  readonly id: string;
  readonly api_address: string;
  readonly cluster_address: string;
  readonly voter: boolean;
  /** Why the member gave no report. Exactly one of `error` and `report` is present. */
  readonly error?: string;
  readonly report?: object;
}

export interface ClusterView {
  /** Name of the node that asked the others. */
  readonly asked: string;
  readonly nodes: readonly MemberView[];
}

/** A member, as its report describes it. */
interface ReportedMember {
  readonly health: HealthAnswer;
  readonly engine: Storage | OutsideEngine;
  readonly peers: Peers;
  readonly role: { readonly isActive: boolean; readonly verdict: StateComparison['verdict'] };
  readonly eligibility: { readonly readRole: ReadRole | undefined };
  readonly leadership: { readonly activeSince: Date; readonly changes: readonly LeadershipChange[] };
  readonly usage: { record(): Promise<unknown> };
}

export class NodeReporter implements ReportSource {
  readonly #member: ReportedMember;
  readonly #host: ReportingHost;

  constructor(member: ReportedMember, host: ReportingHost) {
    this.#member = member;
    this.#host = host;
  }

  async report(): Promise<NodeReport> {
    const [work, space] = await Promise.all([this.#host.work?.(), this.#host.disk.space()]);
    const { health, engine, eligibility, leadership } = this.#member;
    const { code, body } = health;
    const heartbeatMs = body.last_request_forwarding_heartbeat_ms;
    const writeMs = engine.kind === 'raft' ? engine.driver.writeMs : undefined;
    return {
      utc_ms: Date.now(),
      uptime_s: Math.round(process.uptime()),
      version,
      health: {
        code,
        sealed: body.sealed,
        echo_duration_ms: body.echo_duration_ms,
        clock_skew_ms: body.clock_skew_ms,
        ...(heartbeatMs !== undefined && { last_heartbeat_ms: heartbeatMs }),
      },
      serves: eligibility.readRole ?? '',
      ...(engine.kind === 'raft' ? { raft: this.#raft(engine) } : { etcd: this.#progress() }),
      disk: {
        low: engine.diskLow(),
        stalled_ms: engine.diskStalledMs,
        ...(writeMs !== undefined && { write_ms: writeMs }),
        ...(space && { free_bytes: space.availableBytes, total_bytes: space.totalBytes }),
      },
      memory_bytes: process.memoryUsage.rss(),
      ...(work && { work }),
      leaders: leadership.changes.map(({ term, leader, utcMs }) => ({ term, leader: this.#nameOf(leader), utc_ms: utcMs })),
    };
  }

  usage(question: unknown): Promise<object> {
    return this.#host.usage.report(question);
  }

  recordUsage(): Promise<unknown> {
    return this.#member.usage.record();
  }

  #raft({ driver }: Storage): NonNullable<NodeReport['raft']> {
    const { flushedIndex, lastIndex } = driver.status();
    return {
      ...this.#progress(),
      flushed_index: flushedIndex,
      last_index: lastIndex,
      base_index: driver.consensus().baseIndex,
      state_digest: this.#digestWord(),
    };
  }

  #progress(): Progress {
    const { engine, leadership, role: serving } = this.#member;
    const { role, term, leader, commitIndex, appliedIndex } = engine.status();
    const since = serving.isActive ? leadership.activeSince : undefined;
    return {
      role,
      term,
      leader: this.#nameOf(leader),
      commit_index: commitIndex,
      applied_index: appliedIndex,
      ...(since && { active_since: since.toISOString() }),
    };
  }

  #digestWord(): NonNullable<NodeReport['raft']>['state_digest'] {
    const { eligibility, role } = this.#member;
    return role.verdict !== 'different' && eligibility.readRole === 'active' ? 'reference' : role.verdict;
  }

  #nameOf(id: NodeId): string {
    const { engine, peers } = this.#member;
    if (id === 0) return '';
    if (id === engine.status().nodeId) return this.#host.config.node_id;
    return peers.membershipList.member(id)?.name ?? String(id);
  }
}

export interface ReportingHost {
  readonly usage: { report(question: unknown): Promise<object> };
  readonly config: Config;
  readonly disk: Pick<DataDisk, 'space'>;
  /** Absent if nobody counts the work of this node. */
  work?(): Promise<WorkFigures>;
}
