import { flag, type MetricRow, type MetricTarget, registerRows } from './register.ts';

/** State of the cluster members, as this node sees them. */
export interface ClusterFigures {
  readonly members: number;
  /** Present on the active node only. */
  readonly leader?: {
    readonly healthy: boolean;
    readonly failureTolerance: number;
    readonly nodes: readonly { readonly name: string; readonly healthy: boolean }[];
    /** Values from the newest heartbeat of each follower. */
    readonly followers: readonly {
      readonly name: string;
      readonly appliedIndexDelta: number;
      readonly lastHeartbeatMs: number;
    }[];
    /** Rotation of the cluster's authority. @property waitsFor - names of members */
    readonly rotation: { readonly isInProgress: boolean; readonly waitsFor: readonly string[] };
  };
}

/**
 * Registers the gauges of the cluster. A gauge without a value is absent, so only the active node has the gauges that describe all members.
 */
export function registerClusterMetrics({
  cluster,
  ...target
}: MetricTarget & { readonly cluster: () => ClusterFigures | undefined }): void {
  const gauge = (
    name: string,
    help: string,
    label: string | undefined,
    rows: (figures: ClusterFigures) => readonly MetricRow[],
  ): void =>
    registerRows(target, { name, help, label }, () => {
      const figures = cluster();
      return figures === undefined ? [] : rows(figures);
    });
  const onLeader =
    (value: (leader: NonNullable<ClusterFigures['leader']>) => readonly MetricRow[]) => (figures: ClusterFigures) =>
      figures.leader === undefined ? [] : value(figures.leader);

  gauge('raft_peers', 'Number of cluster members', undefined, ({ members }) => [[undefined, members]]);
  gauge(
    'autopilot_healthy',
    '1 if all members are healthy, otherwise 0',
    undefined,
    onLeader(({ healthy }) => [[undefined, flag(healthy)]]),
  );
  gauge(
    'autopilot_failure_tolerance',
    'Number of healthy voters that can fail without loss of the majority',
    undefined,
    onLeader(({ failureTolerance }) => [[undefined, failureTolerance]]),
  );
  gauge(
    'autopilot_node_healthy',
    '1 if the member is healthy, otherwise 0',
    'node_id',
    onLeader(({ nodes }) => nodes.map(({ name, healthy }): MetricRow => [name, flag(healthy)])),
  );
  gauge(
    'raft_storage_follower_applied_index_delta',
    'Log entries that the follower has not yet applied, as of its newest heartbeat',
    'peer_id',
    onLeader(({ followers }) => followers.map(({ name, appliedIndexDelta }): MetricRow => [name, appliedIndexDelta])),
  );
  gauge(
    'raft_storage_follower_last_heartbeat_seconds',
    'Time since the newest heartbeat of the follower, in seconds',
    'peer_id',
    onLeader(({ followers }) => followers.map(({ name, lastHeartbeatMs }): MetricRow => [name, lastHeartbeatMs / 1000])),
  );
  gauge(
    'raft_authority_rotation_in_progress',
    "1 while a rotation of the cluster's authority is in progress, otherwise 0",
    undefined,
    onLeader(({ rotation }) => [[undefined, flag(rotation.isInProgress)]]),
  );
  gauge(
    'raft_authority_rotation_waits_for',
    "1 for each member that holds up the rotation of the cluster's authority",
    'peer_id',
    onLeader(({ rotation }) => rotation.waitsFor.map((name): MetricRow => [name, 1])),
  );
}
