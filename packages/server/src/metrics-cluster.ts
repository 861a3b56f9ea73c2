import { Gauge, type Registry } from 'prom-client';

/** How the members are, as this node sees them. */
export interface ClusterFigures {
  readonly members: number;
  /** Of the active node only. */
  readonly lead?: {
    readonly healthy: boolean;
    readonly failureTolerance: number;
    readonly nodes: readonly { readonly name: string; readonly healthy: boolean }[];
    /** As their newest echoes tell. */
    readonly followers: readonly {
      readonly name: string;
      readonly appliedIndexDelta: number;
      readonly lastHeartbeatMs: number;
    }[];
  };
}

/** Gauges that have a value only where there is one: those of the active node are absent on all others. */
export function registerClusterFigures({
  prefix,
  registers,
  cluster,
}: {
  readonly prefix: string;
  readonly registers: Registry[];
  readonly cluster: () => ClusterFigures | undefined;
}): void {
  type Row = readonly [name: string | undefined, value: number];
  const gauge = (
    name: string,
    help: string,
    label: string | undefined,
    rows: (figures: ClusterFigures) => readonly Row[],
  ): void => {
    new Gauge({
      name: `${prefix}_${name}`,
      help,
      registers,
      labelNames: label === undefined ? [] : [label],
      collect() {
        this.reset();
        if (label === undefined) this.remove();
        const figures = cluster();
        for (const [of, value] of figures === undefined ? [] : rows(figures)) {
          if (label === undefined || of === undefined) this.set(value);
          else this.set({ [label]: of }, value);
        }
      },
    });
  };
  const lead = (value: (lead: NonNullable<ClusterFigures['lead']>) => readonly Row[]) => (figures: ClusterFigures) =>
    figures.lead === undefined ? [] : value(figures.lead);
  const flag = (holds: boolean): number => (holds ? 1 : 0);

  gauge('raft_peers', 'Members of the cluster', undefined, ({ members }) => [[undefined, members]]);
  gauge(
    'autopilot_healthy',
    '1 while all members are healthy',
    undefined,
    lead(({ healthy }) => [[undefined, flag(healthy)]]),
  );
  gauge(
    'autopilot_failure_tolerance',
    'Healthy voters that can fail before there is no majority',
    undefined,
    lead(({ failureTolerance }) => [[undefined, failureTolerance]]),
  );
  gauge(
    'autopilot_node_healthy',
    '1 while that member is healthy',
    'node_id',
    lead(({ nodes }) => nodes.map(({ name, healthy }): Row => [name, flag(healthy)])),
  );
  gauge(
    'raft_storage_follower_applied_index_delta',
    'Entries that a follower has still to apply, by its newest echo',
    'peer_id',
    lead(({ followers }) => followers.map(({ name, appliedIndexDelta }): Row => [name, appliedIndexDelta])),
  );
  gauge(
    'raft_storage_follower_last_heartbeat_ms',
    "Milliseconds since a follower's newest echo",
    'peer_id',
    lead(({ followers }) => followers.map(({ name, lastHeartbeatMs }): Row => [name, lastHeartbeatMs])),
  );
}
