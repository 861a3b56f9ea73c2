// `npm test`: runs every suite of the workspace in two queues, and prints one last line with the sum of all results.
// `-- --cluster` adds the live clusters, `-- --attack` the attack suite, `-- --chaos` two minutes of faults, and half a minute of them on
// etcd, `-- --clients` the third-party clients and the documentation site (downloaded and built first), `-- --release` a dry run of a
// release with the tests of its artifacts, `-- --e2e` the container tests, on an engine started for them. A few failed files of live tests
// run a second time (decision 150).
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { conclude, type FileResults, printFailures, Results, sum } from './test/results.ts';
import { mayRunTwice, withSecondRuns } from './test/second-run.ts';
import { runQueues, type Suite } from './test/suites.ts';

const root = join(import.meta.dirname, '..');
const env = {
  ...process.env,
  TURBO_TELEMETRY_DISABLED: '1',
  // Compiles the tests, and the programs that they start, only once, as is done for a node.
  NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/transitd'),
};

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

const options = ['--cluster', '--attack', '--chaos', '--clients', '--release', '--e2e'] as const;
const rest = process.argv.slice(2).filter((arg) => !options.some((option) => option === arg));
/** The suites, if the command line has this option. */
const asked = (option: (typeof options)[number], ...suites: readonly Suite[]): readonly Suite[] =>
  process.argv.includes(option) ? suites : [];

const bin = 'node_modules/.bin';
const tested = readdirSync(join(root, 'packages'))
  .map((name) => `packages/${name}`)
  .filter((folder) => existsSync(join(root, folder, 'test')));
const packages: Suite = {
  name: 'packages',
  command: [
    ...([`${bin}/turbo`, 'run', 'test', '--concurrency=2', '--continue', '--log-order=grouped', '--log-prefix=none'] as const),
    ...rest,
  ],
  folders: rest.length > 0 ? [] : tested,
};
const mocha = (folder: string): Suite => ({
  name: folder,
  command: [`${bin}/mocha`, '--config', `${folder}/.mocharc.json`],
  folders: [''],
});

/** Mostly suites that compute. */
const computing: readonly Suite[] = [
  { name: 'linter', command: [`${bin}/biome`, 'ci', '.'] },
  { name: 'compiler', command: [`${bin}/tsc`, '-b'] },
  { name: 'rules', command: [process.execPath, 'scripts/check.ts'] },
  { name: 'spelling', command: [`${bin}/cspell`, '--no-progress', '--quiet'] },
  packages,
  ...asked('--clients', mocha('test/clients')),
  ...asked('--release', { name: 'release', command: [process.execPath, 'scripts/release.ts', '--dry-run'], folders: [''] }),
  ...asked('--e2e', { name: 'containers', command: ['scripts/engine.sh', process.execPath, 'scripts/e2e.ts'], folders: [''] }),
];
const chaosSeed = '1';
const chaos = (name: string, ...args: readonly string[]): Suite => ({
  name,
  command: [process.execPath, 'scripts/chaos.ts', '--seed', chaosSeed, ...args],
});
/** Suites of live nodes, which often wait. */
const live: readonly Suite[] = [
  mocha('test'),
  ...asked('--cluster', mocha('test/cluster')),
  ...asked('--attack', mocha('test/attack')),
  ...asked('--chaos', chaos('chaos', '--minutes', '2'), chaos('chaos on etcd', '--minutes', '0.4', '--storage', 'etcd')),
];

const results = await runQueues([computing, live], env);
const first = results.flatMap(({ files }) => files);
printFailures(first, 'Failed:');
const again = mayRunTwice(first).flatMap(runAgain);
printFailures(
  first.filter(({ file }) => again.some((second) => second.file === file && second.failures.length === 0)),
  'UNSTABLE: failed at first, passed in a second run. Look for the cause:',
);
const { passed, failed, pending } = sum(withSecondRuns(first, again));
// The linter, the compiler, the rules, the spelling and the chaos command count as one case each.
const checks = results.flatMap(({ check }) => check ?? []);
const checked = checks.filter((ok) => ok).length;
process.exit(
  conclude(
    { passed: passed === 0 ? 0 : passed + checked, failed: failed + checks.length - checked, pending },
    { ended: results.every(({ ended }) => ended) },
  ),
);
