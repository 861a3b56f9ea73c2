// `npm test`: every suite of the workspace, one after the other, and one last line that counts them all.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'transitd-tally-'));
const tallyFile = join(folder, 'tally');
writeFileSync(tallyFile, '');
const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', TEST_TALLY: tallyFile };
const run = (command: string, args: string[]): boolean =>
  spawnSync(join(root, 'node_modules/.bin', command), args, { cwd: root, stdio: 'inherit', env }).status === 0;

// The linter and the compiler are suites of one case each: what they refuse, `npm test` refuses.
const checks = [run('biome', ['ci', '.']), run('tsc', ['-b'])];
const packages = run('turbo', ['run', 'test', '--concurrency=1', '--continue', '--log-prefix=none', ...process.argv.slice(2)]);
const workspace = run('mocha', ['--config', 'test/.mocharc.json']);

const tally = readFileSync(tallyFile, 'utf8')
  .trim()
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => line.split(' ').map(Number));
rmSync(folder, { recursive: true });
const sum = (column: number): number => tally.reduce((total, line) => total + (line[column] ?? 0), 0);
const passed = sum(0) + checks.filter((ok) => ok).length;
const failed = sum(1) + checks.filter((ok) => !ok).length;
const pending = sum(2);
// A suite that died before its end left no tally but failed its task: it must not look like a pass.
const died = failed === 0 && !(packages && workspace) ? 1 : 0;
console.log(`${passed} passed, ${failed + died} failed${pending > 0 ? `, ${pending} skipped` : ''}`);
process.exit(failed + died > 0 || sum(0) === 0 ? 1 : 0);
