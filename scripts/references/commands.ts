// Writes docs/command-reference.md from the commands of the program.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createProgram } from '../../packages/cli/src/program.ts';
import { commandReference } from '../../packages/cli/src/reference.ts';

const never = (): Promise<never> => Promise.reject(new Error('no command runs here'));
const program = await createProgram(() => undefined, { runServer: never, recover: never, migrateStorage: never });
writeFileSync(join(import.meta.dirname, '../../docs/command-reference.md'), commandReference(program));
