// `npm test`: runs every suite of the workspace one after the other, and prints one last line with the sum of all results.
// `-- --cluster` adds the live clusters, `-- --attack` the attack suite, `-- --chaos` two minutes of faults, `-- --clients` the third-party
// clients (downloaded and built first), `-- --release` a dry run of a release with the tests of its artifacts, `-- --e2e` the container
// tests, on an engine started for them.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { conclude, Tally } from './tally.ts';

const root = join(import.meta.dirname, '..');
const tally = new Tally();
const env = {
  ...process.env,
  ...tally.env,
  TURBO_TELEMETRY_DISABLED: '1',
  // Compiles the tests, and the programs that they start, only once, as is done for a node.
  NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/transitd'),
};
const run = (command: string, args: string[]): boolean =>
  spawnSync(command, args, { cwd: root, stdio: 'inherit', env }).status === 0;
const tool = (name: string, args: string[]): boolean => run(join(root, 'node_modules/.bin', name), args);

const chaosSeed = '1';
const suites = ['--cluster', '--attack', '--chaos', '--clients', '--release', '--e2e'];
const rest = process.argv.slice(2).filter((arg) => !suites.includes(arg));
// The linter, the compiler and the rules count as suites with one case each: if one of them fails, `npm test` fails.
const checks = [tool('biome', ['ci', '.']), tool('tsc', ['-b']), run(process.execPath, ['scripts/check.ts'])];
const packages = tool('turbo', [
  'run',
  'test',
  '--concurrency=2',
  '--continue',
  '--log-order=grouped',
  '--log-prefix=none',
  ...rest,
]);
const workspace = tool('mocha', ['--config', 'test/.mocharc.json']);
const clusters = !process.argv.includes('--cluster') || tool('mocha', ['--config', 'test/cluster/.mocharc.json']);
const attacks = !process.argv.includes('--attack') || tool('mocha', ['--config', 'test/attack/.mocharc.json']);
// Counts as one case, like the checks.
if (process.argv.includes('--chaos'))
  checks.push(run(process.execPath, ['scripts/chaos.ts', '--minutes', '2', '--seed', chaosSeed]));
const clients = !process.argv.includes('--clients') || tool('mocha', ['--config', 'test/clients/.mocharc.json']);
const release = !process.argv.includes('--release') || run(process.execPath, ['scripts/release.ts', '--dry-run']);
const containers = !process.argv.includes('--e2e') || run('scripts/engine.sh', [process.execPath, 'scripts/e2e.ts']);

const { passed, failed, pending } = tally.counts;
tally.close();
const checked = checks.filter((ok) => ok).length;
process.exit(
  conclude(
    { passed: passed === 0 ? 0 : passed + checked, failed: failed + checks.length - checked, pending },
    { ended: packages && workspace && clusters && attacks && clients && release && containers },
  ),
);
