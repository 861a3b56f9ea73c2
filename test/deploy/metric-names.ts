// Collects the metric names that the alert rules and the dashboard use.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../process/live-server.ts';

const rulesFile = join(root, 'deploy/prometheus/rules.yml');
const dashboardFile = join(root, 'deploy/grafana/dashboards/transitd.json');

interface Rule {
  readonly record?: string;
  readonly expr: string;
}

const rules = (): readonly Rule[] =>
  (parse(readFileSync(rulesFile, 'utf8')).groups as { rules: Rule[] }[]).flatMap((group) => group.rules);

const dashboardQueries = (): readonly string[] =>
  (JSON.parse(readFileSync(dashboardFile, 'utf8')).panels as { targets: { expr: string }[] }[]).flatMap(({ targets }) =>
    targets.map(({ expr }) => expr),
  );

/** Returns the names of the recording rules. */
export const recorded = (): readonly string[] => rules().flatMap(({ record }) => record ?? []);

/** Returns every metric name in the queries of rules and dashboard, except those that Prometheus itself provides. */
export function named(): readonly string[] {
  const queries = [...rules().map(({ expr }) => expr), ...dashboardQueries()];
  const bare = queries.map((query) => query.replace(/"[^"]*"/g, '""').replace(/\{[^}]*\}|\[[^\]]*\]|\bby\s*\([^)]*\)/g, ''));
  const names = bare.flatMap((query) => query.match(/[a-zA-Z_][\w:]*(?!\w*\s*\()/g) ?? []);
  return [...new Set(names)].filter((name) => !ofPromql.has(name)).toSorted();
}

const ofPromql = new Set(['or', 'and', 'unless', 'up', 'ALERTS']);
