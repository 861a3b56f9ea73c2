// Programs from the Python registry, each test's in a folder of its own.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end; one that does not exist ends with 127. */
export function run(
  command: string,
  args: readonly string[],
  { env = {}, cwd }: { readonly env?: Readonly<Record<string, string>>; readonly cwd?: string } = {},
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { env: { ...process.env, ...env }, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', (error) => resolve({ code: 127, stdout, stderr: String(error) }));
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/**
 * A Python that has these packages; undefined, with the reason printed, where it cannot be had: then the test is to skip.
 * @param packages - pinned: `hvac==2.4.0`
 * @throws Error with that reason, where `CI` is set
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
