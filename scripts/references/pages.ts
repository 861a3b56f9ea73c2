// The pages of docs/ that are made from the program and from the navigation.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createProgram } from '../../packages/cli/src/program.ts';
import { commandReference } from '../../packages/cli/src/reference.ts';
import { configurationReference } from '../../packages/configuration/src/reference.ts';
import { indexPage } from '../../site/sections.ts';
import { apiDocument } from './api-document.ts';
import { apiReference } from './api-reference.ts';
import { metricsReference } from './metrics-reference.ts';
import { titleOf } from './title-of.ts';

const docs = join(import.meta.dirname, '../../docs');
const never = (): Promise<never> => Promise.reject(new Error('no command runs here'));

/** Writes the pages. Git ignores the references of the API and of the command line. */
export async function writePages(): Promise<void> {
  const program = await createProgram(() => undefined, { runServer: never, recover: never, migrateStorage: never });
  for (const [page, text] of [
    ['api-reference', apiReference(await apiDocument())],
    ['command-reference', commandReference(program)],
    ['configuration', configurationReference()],
    ['metrics', metricsReference()],
    ['index', indexPage(titleOf)],
  ] as const)
    writeFileSync(join(docs, `${page}.md`), text);
}
