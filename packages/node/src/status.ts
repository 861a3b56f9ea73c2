import type { Cluster } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import type { NodeStatus } from '@transitd/health';
import { version } from '@transitd/process';
import type { ReadEligibility } from './read-eligibility.ts';
import type { Services } from './services.ts';

export interface StatusParts {
  readonly config: Config;
  readonly clusterName: { readonly id: string; readonly name: string } | undefined;
  readonly removed: boolean;
  readonly initialized: boolean;
  readonly services: Services | undefined;
  readonly commitIndex: number;
  readonly cluster: Cluster | undefined;
  readonly eligibility: ReadEligibility;
}

/** Returns the status that health reports, from the node's present state. */
export function nodeStatus(parts: StatusParts): NodeStatus {
  const { config, clusterName, services, cluster, eligibility } = parts;
  const common = { version, ...(clusterName && { cluster: clusterName }) };
  if (parts.removed) return { state: 'removed', ...common };
  if (!parts.initialized) return { state: 'uninitialized', ...common };
  if (services !== undefined && eligibility.activeForCertain) {
    const license = config.license && { expiryUtcMs: config.license.expiry_time };
    return { state: 'active', ...common, lastWal: parts.commitIndex, ...(license && { license }) };
  }
  const intervalMs = config.cluster_heartbeat_interval;
  // A node without peers sends no heartbeats. If it does not lead, it soon reports that it is cut off; sealed, it counts from its start.
  const echoes = cluster?.heartbeats.echoes ?? { intervalMs, sinceMs: services?.sinceMs ?? 0, durationMs: 0, clockSkewMs: 0 };
  if (services === undefined) return { state: 'sealed', ...common, echoes };
  const canaryUtcMs = cluster?.canaryUtcMs;
  const standby = { ...common, echoes, ...(canaryUtcMs !== undefined && { canaryUtcMs }) };
  const { appliedSentMs } = eligibility;
  return appliedSentMs === undefined
    ? { state: 'standby', ...standby }
    : { state: 'performance_standby', appliedSentMs, ...standby };
}
