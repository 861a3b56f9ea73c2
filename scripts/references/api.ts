// Writes docs/api-reference.md from the routes of the server.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiDocument } from './api-document.ts';
import { apiReference } from './api-reference.ts';

writeFileSync(join(import.meta.dirname, '../../docs/api-reference.md'), apiReference(await apiDocument()));
