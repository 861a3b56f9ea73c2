// `npm test`: runs every suite of the workspace one after the other, and prints one last line with the sum of all results.
// `-- --cluster` adds the live clusters, `-- --attack` the attack suite, `-- --chaos` two minutes of faults, and half a minute of them on
// etcd, `-- --clients` the third-party clients and the documentation site (downloaded and built first), `-- --release` a dry run of a
// release with the tests of its artifacts, `-- --e2e` the container tests, on an engine started for them. A few failed files of live tests
// run a second time (decision 150).
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { conclude, type FileResults, printFailures, Results, sum } from './results.ts';
import { mayRunTwice, withSecondRuns } from './second-run.ts';

const root = join(import.meta.dirname, '..');
const results = new Results();
const env = {
  ...process.env,
  ...results.env,
  TURBO_TELEMETRY_DISABLED: '1',
  // Compiles the tests, and the programs that they start, only once, as is done for a node.
  NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/transitd'),
};
const run = (command: string, args: string[]): boolean =>
  spawnSync(command, args, { cwd: root, stdio: 'inherit', env }).status === 0;
const tool = (name: string, args: string[]): boolean => run(join(root, 'node_modules/.bin', name), args);

/**
 * Runs the suites of `folders` with one command. False if one of them did not reach its end, or if the command failed without a failed
 * test.
 */
function suitesEnd(folders: readonly string[], command: () => boolean): boolean {
  const before = { ended: results.ended.length, failed: sum(results.files).failed };
  const ok = command();
  const ended = results.ended.slice(before.ended);
  return folders.every((folder) => ended.includes(folder)) && (ok || sum(results.files).failed > before.failed);
}

/** The results of `file` in a run of its own, if it reached its end. */
function runAgain({ folder, file }: FileResults): readonly FileResults[] {
  const second = new Results();
  const args = ['--no-config', '--timeout', '240000', '--exit', '--require', join(root, 'test/unhandled-rejections.mjs')];
  spawnSync(
    join(root, 'node_modules/.bin/mocha'),
    [...args, '--reporter', join(root, 'test/reporter.mjs'), '--spec', join(root, file)],
    {
      cwd: join(root, folder),
      stdio: 'inherit',
      env: { ...env, ...second.env },
    },
  );
  const files = second.files.filter((results) => results.file === file);
  second.close();
  return files;
}

const chaosSeed = '1';
const suites = ['--cluster', '--attack', '--chaos', '--clients', '--release', '--e2e'];
const rest = process.argv.slice(2).filter((arg) => !suites.includes(arg));
// The linter, the compiler and the rules count as suites with one case each: if one of them fails, `npm test` fails.
const checks = [tool('biome', ['ci', '.']), tool('tsc', ['-b']), run(process.execPath, ['scripts/check.ts'])];
const tested = readdirSync(join(root, 'packages'))
  .map((name) => `packages/${name}`)
  .filter((folder) => existsSync(join(root, folder, '.mocharc.json')));
const packages = suitesEnd(rest.length > 0 ? [] : tested, () =>
  tool('turbo', ['run', 'test', '--concurrency=2', '--continue', '--log-order=grouped', '--log-prefix=none', ...rest]),
);
const suite = (folder: string): boolean => suitesEnd([''], () => tool('mocha', ['--config', `${folder}/.mocharc.json`]));
const workspace = suite('test');
const clusters = !process.argv.includes('--cluster') || suite('test/cluster');
const attacks = !process.argv.includes('--attack') || suite('test/attack');
// Each counts as one case, like the checks.
const chaos = (...args: string[]): boolean => run(process.execPath, ['scripts/chaos.ts', '--seed', chaosSeed, ...args]);
if (process.argv.includes('--chaos')) checks.push(chaos('--minutes', '2'), chaos('--minutes', '0.4', '--storage', 'etcd'));
const clients = !process.argv.includes('--clients') || suite('test/clients');
const release =
  !process.argv.includes('--release') || suitesEnd([''], () => run(process.execPath, ['scripts/release.ts', '--dry-run']));
const containers =
  !process.argv.includes('--e2e') || suitesEnd([''], () => run('scripts/engine.sh', [process.execPath, 'scripts/e2e.ts']));

const first = results.files;
printFailures(first, 'Failed:');
const again = mayRunTwice(first).flatMap(runAgain);
printFailures(
  first.filter(({ file }) => again.some((results) => results.file === file && results.failures.length === 0)),
  'UNSTABLE: failed at first, passed in a second run. Look for the cause:',
);
const { passed, failed, pending } = sum(withSecondRuns(first, again));
results.close();
const checked = checks.filter((ok) => ok).length;
process.exit(
  conclude(
    { passed: passed === 0 ? 0 : passed + checked, failed: failed + checks.length - checked, pending },
    { ended: packages && workspace && clusters && attacks && clients && release && containers },
  ),
);
