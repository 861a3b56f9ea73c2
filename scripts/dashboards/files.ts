import { node } from './node.ts';
import { overview } from './overview.ts';
import { type Dashboard, dashboardJson } from './panels.ts';
import { raft } from './raft.ts';
import { transit } from './transit.ts';

export const dashboards: readonly Dashboard[] = [overview, raft, transit, node];

/** Returns the content of each file in `deploy/grafana/dashboards`, by file name. */
export const dashboardFiles = (): ReadonlyMap<string, string> =>
  new Map(dashboards.map((dashboard) => [`${dashboard.uid}.json`, dashboardJson(dashboard)]));
