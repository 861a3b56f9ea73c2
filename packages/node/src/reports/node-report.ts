import type { Engine, Peers, Storage } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import type { HealthAnswer } from '@transitd/health';
import { version } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import type { DataDisk } from './data-disk.ts';
import type { LeadershipChange } from './leadership-history.ts';

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

/** The state of one node, as the node itself reports it. It contains no names of keys, tokens, policies or callers. */
export interface NodeReport {
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

/** The reports of all members. */
export interface ClusterView {
  /** Name of the node that asked the others. */
  readonly asked: string;
  readonly nodes: readonly MemberView[];
}

export interface NodeReportParts {
  readonly config: Config;
  readonly health: () => HealthAnswer;
  readonly serves: () => 'active' | 'reader' | undefined;
  readonly activeSince: () => Date | undefined;
  readonly engine: () => Engine | undefined;
  /** Undefined unless consensus is Raft. */
  readonly storage: () => Storage | undefined;
  readonly peers: () => Peers | undefined;
  readonly leaders: () => readonly LeadershipChange[];
  readonly disk: Pick<DataDisk, 'space'>;
  /** Absent if nobody counts the work of this node. */
  readonly work?: (() => Promise<WorkFigures>) | undefined;
}

/** Returns this node's report on itself. */
export async function nodeReport(parts: NodeReportParts): Promise<NodeReport> {
  const [work, space] = await Promise.all([parts.work?.(), parts.disk.space()]);
  const { code, body } = parts.health();
  const [engine, storage] = [parts.engine(), parts.storage()];
  const heartbeatMs = body.last_request_forwarding_heartbeat_ms;
  const writeMs = storage?.driver.writeMs;
  const nameOf: NameOf = (id) => leaderName(id, parts);
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
    serves: parts.serves() ?? '',
    ...(storage !== undefined
      ? { raft: raftOf(storage, parts, nameOf) }
      : engine !== undefined && { etcd: progressOf(engine.status(), parts, nameOf) }),
    disk: {
      low: engine?.diskLow() ?? false,
      stalled_ms: engine?.diskStalledMs ?? 0,
      ...(writeMs !== undefined && { write_ms: writeMs }),
      ...(space && { free_bytes: space.availableBytes, total_bytes: space.totalBytes }),
    },
    memory_bytes: process.memoryUsage.rss(),
    ...(work && { work }),
    leaders: parts.leaders().map(({ term, leader, utcMs }) => ({ term, leader: nameOf(leader), utc_ms: utcMs })),
  };
}

function raftOf({ driver }: Pick<Storage, 'driver'>, parts: NodeReportParts, nameOf: NameOf): NonNullable<NodeReport['raft']> {
  const status = driver.status();
  return {
    ...progressOf(status, parts, nameOf),
    flushed_index: status.flushedIndex,
    last_index: status.lastIndex,
    base_index: driver.consensus().baseIndex,
    state_digest: digestWord(parts.peers(), parts.serves() === 'active'),
  };
}

type NameOf = (id: NodeId) => string;

function progressOf(
  { role, term, leader, commitIndex, appliedIndex }: ReturnType<Engine['status']>,
  { activeSince }: Pick<NodeReportParts, 'activeSince'>,
  nameOf: NameOf,
): Progress {
  const since = activeSince();
  return {
    role,
    term,
    leader: nameOf(leader),
    commit_index: commitIndex,
    applied_index: appliedIndex,
    ...(since && { active_since: since.toISOString() }),
  };
}

function digestWord(peers: Peers | undefined, isActive: boolean): NonNullable<NodeReport['raft']>['state_digest'] {
  if (peers?.stateDigestDiffers) return 'different';
  if (isActive) return 'reference';
  return peers?.stateDigestMatches ? 'same' : 'unknown';
}

function leaderName(id: NodeId, { peers, engine, config }: NodeReportParts): string {
  if (id === 0) return '';
  if (id === engine()?.status().nodeId) return config.node_id;
  return peers()?.membershipList.member(id)?.name ?? String(id);
}
