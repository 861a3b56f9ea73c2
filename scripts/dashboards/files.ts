import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { node } from './node.ts';
import { overview } from './overview.ts';
import { type Dashboard, dashboardJson } from './panels.ts';
import { raft } from './raft.ts';
import { transit } from './transit.ts';

export const dashboards: readonly Dashboard[] = [overview, raft, transit, node];

/** Writes one file for each dashboard, named by its uid. */
export function writeDashboards(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const dashboard of dashboards) writeFileSync(join(folder, `${dashboard.uid}.json`), dashboardJson(dashboard));
}
