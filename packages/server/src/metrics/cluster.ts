import type { Node } from '@transitd/node';
import { type MetricRow, type MetricTarget, type NodeSource, registerRows } from './register.ts';

type Cluster = NonNullable<NonNullable<Node['member']>['cluster']>;

/** The cluster as its active node sees it. */
interface LeaderView {
  readonly cluster: Cluster;
  readonly state: NonNullable<Cluster['autopilot']['latestState']>;
  readonly appliedIndex: number;
}

/**
 * Registers the gauges of the cluster. A gauge without a value is absent, so only the active node has the gauges that describe all members.
 */
export function registerClusterMetrics(target: MetricTarget, node: NodeSource): void {
  const members = { name: 'raft_peers', help: 'Number of cluster members' };
  registerRows(target, members, () => [[undefined, node()?.member?.cluster?.membershipList.members.length]]);
  const gauge = (name: string, help: string, value: (leader: LeaderView) => number | boolean): void =>
    registerRows(target, { name, help }, () => onLeader(node(), (leader) => [[undefined, value(leader)]]));
  const gauges = (name: string, help: string, label: string, rows: (leader: LeaderView) => readonly MetricRow[]): void =>
    registerRows(target, { name, help, label }, () => onLeader(node(), rows));

  gauge('autopilot_healthy', '1 if all members are healthy, otherwise 0', ({ state }) => state.healthy);
  gauge(
    'autopilot_failure_tolerance',
    'Number of healthy voters that can fail without loss of the majority',
    ({ state }) => state.failureTolerance,
  );
  gauges('autopilot_node_healthy', '1 if the member is healthy, otherwise 0', 'node_id', ({ state }) =>
    state.servers.map(({ member, healthy }) => [member.name, healthy]),
  );
  gauges(
    'raft_storage_follower_applied_index_delta',
    'Log entries that the follower has not yet applied, as of its newest heartbeat',
    'peer_id',
    (leader) => ofFollowers(leader, ({ appliedIndex }) => Math.max(0, leader.appliedIndex - appliedIndex)),
  );
  gauges(
    'raft_storage_follower_last_heartbeat_seconds',
    'Time since the newest heartbeat of the follower, in seconds',
    'peer_id',
    (leader) => ofFollowers(leader, ({ agoMs }) => agoMs / 1000),
  );
  gauge(
    'raft_authority_rotation_in_progress',
    "1 while a rotation of the cluster's authority is in progress, otherwise 0",
    ({ cluster }) => cluster.rotation.status.phase !== 'none',
  );
  gauges(
    'raft_authority_rotation_waits_for',
    "1 for each member that holds up the rotation of the cluster's authority",
    'peer_id',
    ({ cluster }) => cluster.rotation.status.waitsFor.map((name) => [name, 1]),
  );
}

function onLeader(node: Node | undefined, rows: (leader: LeaderView) => readonly MetricRow[]): readonly MetricRow[] {
  const { cluster, replica } = node?.member ?? {};
  const state = node?.active ? cluster?.autopilot.latestState : undefined;
  if (cluster === undefined || replica === undefined || state === undefined) return [];
  return rows({ cluster, state, appliedIndex: replica.status().appliedIndex });
}

type Report = NonNullable<ReturnType<Cluster['standbys']['report']>>;

/** Returns a value from the newest heartbeat of each follower. */
const ofFollowers = ({ state, cluster }: LeaderView, value: (report: Report) => number): readonly MetricRow[] =>
  state.servers
    .filter(({ role }) => role !== 'leader')
    .map(({ member: { id, name } }) => {
      const report = cluster.standbys.report(id);
      return [name, report && value(report)];
    });
