// `npm run e2e`: the container tests, on the engine of DOCKER_HOST or the default socket. Without an engine, or without the programs for
// the images, it fails with a message; `scripts/engine.sh npm run e2e` starts an engine for it.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { missing } from '../test/e2e/needs.ts';
import { conclude, printFailures, Results, sum } from './test/results.ts';

const root = join(import.meta.dirname, '..');
const mocha = join(root, 'node_modules/.bin/mocha');

/** Whether the suite ran to its end without a failure. */
function run(env: NodeJS.ProcessEnv): boolean {
  const lacks = missing();
  for (const lack of lacks) console.error(`e2e: ${lack}`);
  if (lacks.length > 0) return false;
  const args = ['--config', 'test/e2e/.mocharc.json', ...process.argv.slice(2)];
  return spawnSync(mocha, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } }).status === 0;
}

if (process.env['TEST_RESULTS'] !== undefined) process.exit(run({}) ? 0 : 1); // part of a larger run, which adds up the results
const results = new Results();
const ended = run(results.env);
const { files } = results;
results.close();
printFailures(files, 'Failed:');
process.exit(conclude(sum(files), { ended }));
