import type { ProviderHealth } from '@transitd/barrier';
import { version } from '@transitd/process';
import { supportedLevels } from '@transitd/storage-fsm';
import { flag, type MetricTarget, registerGauge, registerRows } from './register.ts';

/** State of the node that the gauges read at each scrape. Nothing is copied. */
export interface NodeSources {
  readonly unsealed: () => boolean;
  readonly active: () => boolean;
  readonly raft: () =>
    | {
        readonly appliedIndex: number;
        readonly commitIndex: number;
        readonly flushedIndex: number;
        readonly lastIndex: number;
        readonly term: number;
        readonly diskLow: boolean;
      }
    | undefined;
  /** Feature level of the state of this node. */
  readonly featureLevel?: () => number;
  /** Time for which a write to the disk has hung, in ms. */
  readonly diskStalledMs?: () => number;
  readonly barrierEncryptions: () => number;
  /** The health of the seal's provider; undefined if the seal has none. */
  readonly seal?: () => ProviderHealth | undefined;
  /** Undefined before the node is open. */
  readonly clock?: () => { readonly isTrusted: boolean; readonly deviationS: number } | undefined;
}

/** Registers the gauges of the state of this node: release, seal, role, log, disk and clock. */
export function registerNodeGauges(target: MetricTarget, sources: NodeSources): void {
  const gauge = (name: string, help: string, value: () => number): void => registerGauge(target, name, help, value);

  const release = { name: 'build_info', help: 'Always 1; the label has the version of the release', label: 'version' };
  registerRows(target, release, () => [[version, 1]]);
  gauge('core_unsealed', '1 if this node is unsealed, otherwise 0', () => flag(sources.unsealed()));
  gauge('core_active', '1 if this node is the active node, otherwise 0', () => flag(sources.active()));
  gauge('barrier_estimated_encryptions', 'Number of values encrypted with the current encryption key of the barrier', () =>
    sources.barrierEncryptions(),
  );
  gauge('raft_storage_stats_applied_index', 'Index of the last applied log entry', () => sources.raft()?.appliedIndex ?? 0);
  gauge(
    'raft_storage_stats_commit_index',
    'Index of the last log entry known to be committed',
    () => sources.raft()?.commitIndex ?? 0,
  );
  gauge(
    'raft_storage_stats_flushed_index',
    'Index of the last log entry flushed to the state store',
    () => sources.raft()?.flushedIndex ?? 0,
  );
  gauge('raft_storage_stats_last_index', 'Index of the last entry in the log', () => sources.raft()?.lastIndex ?? 0);
  gauge(
    'raft_feature_level',
    'Feature level of the cluster, as of the last log entry that this node applied',
    () => sources.featureLevel?.() ?? 0,
  );
  gauge(
    'raft_feature_level_supported',
    'Highest feature level that the release of this node supports',
    () => supportedLevels.newest,
  );
  gauge('raft_storage_stats_term', 'Current Raft term', () => sources.raft()?.term ?? 0);
  gauge('disk_low', '1 if free disk space is below the reserve and writes are refused, otherwise 0', () =>
    flag(sources.raft()?.diskLow === true),
  );
  gauge(
    'disk_stalled_seconds',
    'Seconds for which the present write to the log, or a flush that blocks writes, has been in progress, otherwise 0',
    () => (sources.diskStalledMs?.() ?? 0) / 1000,
  );
  gauge('raft_storage_stats_fsm_pending', 'Number of committed log entries that are not yet applied', () => {
    const { commitIndex = 0, appliedIndex = 0 } = sources.raft() ?? {};
    return commitIndex - appliedIndex;
  });
  gauge('core_clock_trusted', '0 if the wall clock deviates from the monotonic clock and is not trusted, otherwise 1', () =>
    sources.clock?.()?.isTrusted === false ? 0 : 1,
  );
  gauge(
    'core_clock_deviation_seconds',
    'Deviation of the wall clock from the monotonic clock, in seconds; positive if the wall clock is ahead',
    () => sources.clock?.()?.deviationS ?? 0,
  );
  gauge('seal_unreachable_time', 'Milliseconds since the provider of the seal stopped serving this node, otherwise 0', () => {
    const since = sources.seal?.()?.unhealthySinceMs;
    return since === undefined ? 0 : Math.max(0, Date.now() - since);
  });
}
