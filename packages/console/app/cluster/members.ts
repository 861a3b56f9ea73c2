import { flagIn, type Json, listIn, numberIn, numberOrNone, objectIn, textIn } from '../api/json.ts';

/** Counters of a node since its start. */
export interface Work {
  readonly requests: number;
  readonly refused: number;
  readonly failed: number;
  readonly writes: number;
  /** Upper bound in milliseconds, and the number of requests that took at most that long. */
  readonly durations: readonly (readonly [number, number])[];
}

/** The log of a node and the records that it made from it. */
export interface Log {
  readonly base: number;
  readonly flushed: number;
  readonly last: number;
  readonly digest: string;
}

export interface Report {
  readonly utcMs: number;
  readonly uptimeS: number;
  readonly version: string;
  readonly code: number;
  readonly serves: string;
  readonly roundTripMs: number;
  readonly skewMs: number;
  readonly heartbeatMs: number | undefined;
  readonly role: string;
  readonly term: number;
  readonly leader: string;
  readonly applied: number;
  readonly commit: number;
  /** Whether the records of this node are in etcd. Such a node has no log. */
  readonly isOnEtcd: boolean;
  readonly log: Log | undefined;
  readonly diskLow: boolean;
  readonly stalledMs: number;
  readonly writeMs: number | undefined;
  readonly freeBytes: number | undefined;
  readonly totalBytes: number | undefined;
  readonly memoryBytes: number;
  readonly work: Work | undefined;
  readonly leaders: readonly { readonly term: number; readonly leader: string; readonly utcMs: number }[];
}

export interface Member {
  readonly name: string;
  readonly apiAddress: string;
  readonly voter: boolean;
  readonly error: string;
  readonly report: Report | undefined;
}

export interface ClusterView {
  readonly asked: string;
  readonly members: readonly Member[];
  /** When this page received the view, by its monotonic clock. */
  readonly atMs: number;
}

/** Reads the answer of `sys/nodes`. */
export function clusterViewIn(data: unknown): ClusterView {
  const { asked, nodes } = objectIn(data);
  const members = listIn(nodes).map(memberIn);
  members.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  return { asked: textIn(asked), members, atMs: performance.now() };
}

function memberIn(value: unknown): Member {
  const { name, api_address, voter, error, report } = objectIn(value);
  return {
    name: textIn(name),
    apiAddress: textIn(api_address),
    voter: flagIn(voter),
    error: textIn(error),
    report: report === undefined ? undefined : reportIn(objectIn(report)),
  };
}

function reportIn(report: Json): Report {
  const health = objectIn(report['health']);
  const raft = report['raft'] === undefined ? undefined : objectIn(report['raft']);
  const progress = raft ?? objectIn(report['etcd']);
  const disk = objectIn(report['disk']);
  return {
    utcMs: numberIn(report['utc_ms']),
    uptimeS: numberIn(report['uptime_s']),
    version: textIn(report['version']),
    code: numberIn(health['code']),
    serves: textIn(report['serves']),
    roundTripMs: numberIn(health['echo_duration_ms']),
    skewMs: numberIn(health['clock_skew_ms']),
    heartbeatMs: numberOrNone(health['last_heartbeat_ms']),
    role: textIn(progress['role']),
    term: numberIn(progress['term']),
    leader: textIn(progress['leader']),
    applied: numberIn(progress['applied_index']),
    commit: numberIn(progress['commit_index']),
    isOnEtcd: report['etcd'] !== undefined,
    log: raft && logIn(raft),
    diskLow: flagIn(disk['low']),
    stalledMs: numberIn(disk['stalled_ms']),
    writeMs: numberOrNone(disk['write_ms']),
    freeBytes: numberOrNone(disk['free_bytes']),
    totalBytes: numberOrNone(disk['total_bytes']),
    memoryBytes: numberIn(report['memory_bytes']),
    work: report['work'] === undefined ? undefined : workIn(objectIn(report['work'])),
    leaders: listIn(report['leaders'])
      .map(objectIn)
      .map(({ term, leader, utc_ms }) => ({ term: numberIn(term), leader: textIn(leader), utcMs: numberIn(utc_ms) })),
  };
}

const logIn = (raft: Json): Log => ({
  base: numberIn(raft['base_index']),
  flushed: numberIn(raft['flushed_index']),
  last: numberIn(raft['last_index']),
  digest: textIn(raft['state_digest']),
});

const workIn = (work: Json): Work => ({
  requests: numberIn(work['requests']),
  refused: numberIn(work['refused']),
  failed: numberIn(work['failed']),
  writes: numberIn(work['writes']),
  durations: listIn(work['durations']).map((row) => {
    const [ms, requests] = listIn(row);
    return [numberIn(ms), numberIn(requests)] as const;
  }),
});
