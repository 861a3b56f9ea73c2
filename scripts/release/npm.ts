import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Runs npm and returns its output. If npm runs this script, runs the same npm. */
export function npm(args: readonly string[], cwd: string): string {
  const path = process.env['npm_execpath'];
  const [command = 'npm', ...first] = path !== undefined && existsSync(path) ? [process.execPath, path] : ['npm'];
  return execFileSync(command, [...first, ...args, '--loglevel=error'], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 2] });
}
