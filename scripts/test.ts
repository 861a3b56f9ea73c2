// `npm test [-- --cluster] [--attack] [--chaos] [--clients] [--release] [--e2e]`: runs the suites, each a task of turbo.json, two at a
// time, and prints one last line with the sum of all results. `--cluster` adds the live clusters, `--attack` the attack suite, `--chaos`
// two minutes of faults, and half a minute of them on etcd, `--clients` the third-party clients and the documentation site (downloaded and
// built first), `--release` a dry run of a release with the tests of its artifacts, `--e2e` the container tests, on an engine started for
// them. A few failed files of live tests run a second time (decision 150).
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from './parse-args.ts';
import { type EndedTask, type FileResults, printFailures, resultsFile, resultsOf, sum, unended } from './test/results.ts';
import { mayRunTwice, withSecondRuns } from './test/second-run.ts';

const root = join(import.meta.dirname, '..');
/** Twice as long as all suites need on two idle cores: a suite that does not end must not keep its failures to itself. */
const limitMs = 100 * 60_000;
const optional = ['cluster', 'attack', 'chaos', 'clients', 'release', 'e2e'];
const env = {
  ...process.env,
  TURBO_TELEMETRY_DISABLED: '1',
  // Compiles the tests, and the programs that they start, only once, as is done for a node.
  NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/transitd'),
};

const { values } = parseArgs({ options: Object.fromEntries(optional.map((name) => [name, { type: 'boolean' as const }])) });
const asked = optional.filter((name) => values[name] === true).map((name) => `test:${name}`);
const ofRoot = ['check', 'test:live', ...asked];
const tasks = runTasks(['test', ...ofRoot]);
const missing = unended([...ofRoot.map((name) => `//#${name}`), ...packageSuites()], tasks);
const first = [...tasks.flatMap((task) => resultsOf(task, writtenBy(task))), ...missing];
printFailures(first, 'Failed:');
const again = mayRunTwice(first).flatMap(runAgain);
printFailures(
  first.filter(({ file }) => again.some((second) => second.file === file && second.failures.length === 0)),
  'UNSTABLE: failed at first, passed in a second run. Look for the cause:',
);
const { passed, failed, pending } = sum(withSecondRuns(first, again));
console.log(`${passed} passed, ${failed} failed${pending > 0 ? `, ${pending} skipped` : ''}`);
process.exit(failed > 0 ? 1 : 0);

/** Returns the ids of the tasks `test` of all packages. */
function packageSuites(): readonly string[] {
  const paths = globSync('packages/*/package.json', { cwd: root });
  return paths.map((path) => `${JSON.parse(readFileSync(join(root, path), 'utf8')).name}#test`);
}

/** Runs tasks of turbo.json, and returns all that have ended; none if Turborepo itself failed. */
function runTasks(names: readonly string[]): readonly EndedTask[] {
  for (const old of globSync(['.turbo/{runs/*,test-*}.json', 'packages/*/.turbo/test.json'], { cwd: root }))
    rmSync(join(root, old));
  // `transit` is no command: it makes the hash of a suite depend on the packages that its package imports.
  const run = ['run', 'transit', ...names, '--only', '--continue', '--concurrency=2', '--summarize'];
  spawnSync(join(root, 'node_modules/.bin/turbo'), [...run, '--log-order=grouped', '--log-prefix=none'], {
    cwd: root,
    stdio: 'inherit',
    env,
    timeout: limitMs,
  });
  const [summary] = globSync('.turbo/runs/*.json', { cwd: root });
  if (summary === undefined) return [];
  return JSON.parse(readFileSync(join(root, summary), 'utf8')).tasks;
}

function writtenBy(task: EndedTask): readonly FileResults[] | undefined {
  const file = resultsFile(task);
  return file === undefined ? undefined : readResults(join(root, task.directory, file));
}

function readResults(path: string): readonly FileResults[] | undefined {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined;
}

/** The results of `file` in a run of its own, if it reached its end. */
function runAgain({ folder, file }: FileResults): readonly FileResults[] {
  const args = ['--no-config', '--timeout', '240000', '--exit', '--require', join(root, 'test/unhandled-rejections.mjs')];
  const results = join(root, folder, '.turbo/second-run.json');
  rmSync(results, { force: true });
  spawnSync(
    join(root, 'node_modules/.bin/mocha'),
    [...args, '--reporter', join(root, 'test/reporter.mjs'), '--spec', join(root, file)],
    { cwd: join(root, folder), stdio: 'inherit', env: { ...env, npm_lifecycle_event: 'second-run' } },
  );
  return readResults(results)?.filter((second) => second.file === file) ?? [];
}
