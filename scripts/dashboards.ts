// `node scripts/dashboards.ts`: writes deploy/grafana/dashboards from the descriptions in scripts/dashboards.
import { join } from 'node:path';
import { writeDashboards } from './dashboards/files.ts';

writeDashboards(join(import.meta.dirname, '../deploy/grafana/dashboards'));
