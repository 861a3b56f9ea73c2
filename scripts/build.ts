// `npm run build`: builds the console (packages/console), and writes the dashboards of Grafana and the pages of docs/ that are made from
// the program and from the navigation.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { writeDashboards } from './dashboards.ts';
import { writePages } from './references/pages.ts';

const root = join(import.meta.dirname, '..');
const { status } = spawnSync(join(root, 'node_modules/.bin/turbo'), ['run', 'build'], { cwd: root, stdio: 'inherit' });
if (status !== 0) process.exit(1);
writeDashboards(join(root, 'deploy/grafana/dashboards'));
await writePages();
