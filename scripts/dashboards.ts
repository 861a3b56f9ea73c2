// `node scripts/dashboards.ts`: writes deploy/grafana/dashboards from the descriptions in scripts/dashboards.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dashboardFiles } from './dashboards/files.ts';

const folder = join(import.meta.dirname, '../deploy/grafana/dashboards');
for (const [name, text] of dashboardFiles()) writeFileSync(join(folder, name), text);
