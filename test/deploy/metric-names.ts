// Collects the metric names that the alert rules and the dashboards use.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { dashboards } from '../../scripts/dashboards.ts';
import { root } from '../process/live-server.ts';

const rulesFile = join(root, 'deploy/prometheus/rules.yml');

interface Rule {
  readonly record?: string;
  readonly expr: string;
}

const rules = (): readonly Rule[] =>
  (parse(readFileSync(rulesFile, 'utf8')).groups as { rules: Rule[] }[]).flatMap((group) => group.rules);

const dashboardQueries = (): readonly string[] =>
  dashboards.flatMap(({ rows }) => rows.flatMap(({ panels }) => panels.flatMap(({ queries }) => Object.values(queries))));

/** Metrics that a healthy cluster declares and need not set. */
export const withoutValue: readonly string[] = [
  'svc_raft_authority_rotation_waits_for',
  'svc_ha_rpc_client_echo_errors',
  // Only with a client_crl_file.
  'svc_revocation_list_expiry_timestamp_seconds',
  // Only on clusters that replicate.
  'svc_replication_connected',
  'svc_replication_digest_differs',
  'svc_replication_fence_closed',
  'svc_replication_fence_remaining_seconds',
  'svc_replication_key_material_degraded',
  'svc_replication_key_material_late',
  'svc_replication_key_material_refused',
  'svc_replication_lag_entries',
  'svc_replication_lag_seconds',
  'svc_replication_secondary_connected',
  'svc_replication_secondary_lag_entries',
  'svc_replication_secondary_lag_seconds',
  'svc_replication_secondary_unproven_claim',
  'svc_replication_states_sent',
  'svc_replication_stopped',
];

/** Returns the names of the recording rules. */
export const recorded = (): readonly string[] => rules().flatMap(({ record }) => record ?? []);

/** Returns every metric name in the queries of rules and dashboards, except those that Prometheus itself provides. */
export function named(): readonly string[] {
  const queries = [...rules().map(({ expr }) => expr), ...dashboardQueries()];
  const bare = queries.map((query) => query.replace(/"[^"]*"/g, '""').replace(/\{[^}]*\}|\[[^\]]*\]|\bby\s*\([^)]*\)/g, ''));
  const names = bare.flatMap((query) => query.match(/[a-zA-Z_][\w:]*(?!\w*\s*\()/g) ?? []);
  return [...new Set(names)].filter((name) => !ofPromql.has(name)).toSorted();
}

const ofPromql = new Set(['or', 'and', 'unless', 'up', 'ALERTS']);
