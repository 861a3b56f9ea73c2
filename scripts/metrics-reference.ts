// Writes docs/metrics.md from the metrics that a node registers.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { metricsReference } from '../packages/server/src/metrics/reference.ts';

writeFileSync(join(import.meta.dirname, '../docs/metrics.md'), metricsReference());
