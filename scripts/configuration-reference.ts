// Writes docs/configuration.md from the schema of the configuration.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configurationReference } from '../packages/configuration/src/reference.ts';

writeFileSync(join(import.meta.dirname, '../docs/configuration.md'), configurationReference());
