import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Runs npm, the one that runs this script if there is one, and returns its output. */
export function npm(args: readonly string[], cwd: string): string {
  const path = process.env['npm_execpath'];
  const [command = 'npm', ...first] = path !== undefined && existsSync(path) ? [process.execPath, path] : ['npm'];
  return execFileSync(command, [...first, ...args, '--loglevel=error'], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 2] });
}
