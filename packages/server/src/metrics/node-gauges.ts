import type { Node } from '@transitd/node';
import { version } from '@transitd/process';
import { supportedLevels } from '@transitd/storage-fsm';
import { type MetricTarget, type NodeSource, registerGauge, registerRows } from './register.ts';

/** Registers the gauges of the state of this node: release, seal, role, log, disk and clock. */
export function registerNodeGauges(target: MetricTarget, node: NodeSource): void {
  const gauge = (name: string, help: string, value: (node: Node | undefined) => number | boolean): void =>
    registerGauge(target, name, help, () => value(node()));
  const raft = (of: (status: RaftStatus) => number | boolean) => (node: Node | undefined) => {
    const status = node?.member?.replica.status();
    return status === undefined ? 0 : of(status);
  };

  const release = { name: 'build_info', help: 'Always 1; the label has the version of the release', label: 'version' };
  registerRows(target, release, () => [[version, 1]]);
  gauge('core_unsealed', '1 if this node is unsealed, otherwise 0', (node) => node?.services !== undefined);
  gauge('core_active', '1 if this node is the active node, otherwise 0', (node) => node?.active ?? false);
  gauge(
    'core_keys_near_max_operations',
    'Number of keys whose newest version has made 80 % of its max_operations, of those used since this node is active',
    (node) => node?.member?.usage.keysNearLimit ?? 0,
  );
  gauge('barrier_estimated_encryptions', 'Number of values encrypted with the current encryption key of the barrier', (node) =>
    node?.services === undefined ? 0 : (node.member?.barrier.rotation.keyStatus().encryptions ?? 0),
  );
  gauge(
    'raft_storage_stats_applied_index',
    'Index of the last applied log entry',
    raft(({ appliedIndex }) => appliedIndex),
  );
  gauge(
    'raft_storage_stats_commit_index',
    'Index of the last log entry known to be committed',
    raft(({ commitIndex }) => commitIndex),
  );
  gauge(
    'raft_storage_stats_flushed_index',
    'Index of the last log entry flushed to the state store',
    raft(({ flushedIndex }) => flushedIndex),
  );
  gauge(
    'raft_storage_stats_last_index',
    'Index of the last entry in the log',
    raft(({ lastIndex }) => lastIndex),
  );
  gauge(
    'raft_feature_level',
    'Feature level of the cluster, as of the last log entry that this node applied',
    (node) => node?.member?.engine.featureLevel ?? 0,
  );
  gauge(
    'raft_feature_level_supported',
    'Highest feature level that the release of this node supports',
    () => supportedLevels.newest,
  );
  gauge(
    'raft_storage_stats_term',
    'Current Raft term',
    raft(({ term }) => term),
  );
  gauge(
    'disk_low',
    '1 if free disk space is below the reserve and writes are refused, otherwise 0',
    raft(({ diskLow }) => diskLow),
  );
  gauge(
    'disk_stalled_seconds',
    'Seconds for which the present write to the log, or a flush that blocks writes, has been in progress, otherwise 0',
    (node) => (node?.member?.engine.diskStalledMs ?? 0) / 1000,
  );
  gauge(
    'raft_storage_stats_fsm_pending',
    'Number of committed log entries that are not yet applied',
    raft(({ commitIndex, appliedIndex }) => commitIndex - appliedIndex),
  );
  gauge(
    'core_clock_trusted',
    '0 if the wall clock deviates from the monotonic clock and is not trusted, otherwise 1',
    (node) => node?.clock.isTrusted ?? true,
  );
  gauge(
    'core_clock_deviation_seconds',
    'Deviation of the wall clock from the monotonic clock, in seconds; positive if the wall clock is ahead',
    (node) => node?.clock.deviationS ?? 0,
  );
  gauge('seal_unreachable_time', 'Milliseconds since the provider of the seal stopped serving this node, otherwise 0', (node) => {
    const since = node?.sealHealth?.unhealthySinceMs;
    return since === undefined ? 0 : Math.max(0, Date.now() - since);
  });
}

type RaftStatus = ReturnType<NonNullable<Node['member']>['replica']['status']>;
