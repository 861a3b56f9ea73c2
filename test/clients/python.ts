// Installs programs from the Python registry: each list of packages once, for all tests and later runs.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../process/live-server.ts';
import { run } from './run.ts';

/**
 * Returns a Python with these packages. If it is not available, prints the reason and returns undefined; the test is then skipped.
 * @param packages - pinned: `hvac==2.4.0`
 * @throws Error with that reason, if `CI` is set
 */
export async function pythonWith(packages: readonly string[]): Promise<string | undefined> {
  const environment = join(root, 'node_modules/.cache/transitd-clients', packages.join('+'));
  const python = join(environment, 'bin/python');
  const stamp = join(environment, 'installed');
  const { stdout: version } = await run('python3', ['--version']);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === version) return python;
  // Few of the modules are imported, so most would be compiled for nothing.
  const pip = ['-m', 'pip', 'install', '--quiet', '--no-compile', '--disable-pip-version-check', '--retries', '1', ...packages];
  for (const [command, args] of [
    ['python3', ['-m', 'venv', '--clear', environment]],
    [python, pip],
  ] as const) {
    const { code, stderr } = await run(command, args);
    if (code === 0) continue;
    const reason = `${packages.join(' ')} cannot be installed: ${stderr.trim().split('\n').at(-1)}`;
    if (process.env['CI'] !== undefined) throw new Error(reason);
    console.log(`      skipped: ${reason}`);
    return undefined;
  }
  writeFileSync(stamp, version);
  return python;
}
