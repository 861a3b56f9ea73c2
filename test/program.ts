// The program whose processes a suite of live tests starts. A required module of the suite's configuration.
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { copyReplaced } from '../scripts/release/workspace.ts';

const root = join(import.meta.dirname, '..');

/** Libraries without native code that every start loads: 200 modules. They find nothing by the path of their files. */
const joined = /^(?:commander|lru-cache|prom-client|shamir-secret-sharing|tar-stream|ws|zod)(?:\/|$)/;

let folder = '';

/** Runs once, before the suite starts its workers, which inherit the environment. */
export async function mochaGlobalSetup(): Promise<void> {
  folder = mkdtempSync(join(root, 'node_modules/.cache/program-'));
  process.env['TEST_PROGRAM'] = await joinedProgram(root, folder);
}

export function mochaGlobalTeardown(): void {
  rmSync(folder, { recursive: true });
}

/**
 * Joins the modules of a workspace and of some libraries to a few files, unchanged: a node starts from them in less than half the processor
 * time that it needs for a thousand sources, or in a quarter if nothing is compiled yet.
 * @param workspace - its other libraries are found from the files too
 * @param folder - for the files; exists
 * @returns the path of the program
 */
export async function joinedProgram(workspace: string, folder: string): Promise<string> {
  const server = join(workspace, 'packages/server');
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({
    cwd: workspace,
    platform: 'node',
    input: {
      main: join(server, 'src/main.ts'),
      'gateway-thread': join(server, 'src/gateway-thread.ts'),
      // A thread's script is loaded by its address, relative to the module that starts the thread.
      'modules/library-thread': join(workspace, 'packages/pkcs11/src/library-thread.ts'),
    },
    // A joined library is joined with all libraries that it imports itself.
    external: (id, importer) =>
      isBuiltin(id) || !(/^(?:[./]|@transitd\/)/.test(id) || joined.test(id) || importer?.includes('/node_modules/') === true),
    treeshake: false,
  });
  await bundle.write({
    dir: folder,
    format: 'esm',
    // By default it removes calls that are made only for the errors that they throw.
    minify: false,
    entryFileNames: '[name].js',
    chunkFileNames: 'modules/[name]-[hash].js',
  });
  await bundle.close();
  cpSync(join(server, 'package.json'), join(folder, 'package.json'));
  const program = join(folder, 'transitd.mjs');
  copyReplaced(join(server, 'transitd.mjs'), program, {
    "'./src/main.ts'": "'./main.js'",
    "'../../node_modules/.cache/transitd'": "'../transitd'",
  });
  return program;
}
