// Installs programs from the Python registry, into one folder for each test.
import { join } from 'node:path';
import { run } from './run.ts';

/**
 * Returns a Python with these packages. If it is not available, prints the reason and returns undefined; the test is then skipped.
 * @param packages - pinned: `hvac==2.4.0`
 * @throws Error with that reason, if `CI` is set
 */
export async function pythonWith(packages: readonly string[], folder: string): Promise<string | undefined> {
  const environment = join(folder, 'venv');
  const python = join(environment, 'bin/python');
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--retries', '1', ...packages];
  for (const [command, args] of [
    ['python3', ['-m', 'venv', environment]],
    [python, pip],
  ] as const) {
    const { code, stderr } = await run(command, args);
    if (code === 0) continue;
    const reason = `${packages.join(' ')} cannot be installed: ${stderr.trim().split('\n').at(-1)}`;
    if (process.env['CI'] !== undefined) throw new Error(reason);
    console.log(`      skipped: ${reason}`);
    return undefined;
  }
  return python;
}
