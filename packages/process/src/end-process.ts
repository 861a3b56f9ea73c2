import { existsSync } from 'node:fs';

/** The program of this process on Linux, even if its file has been replaced since the start. */
const ownProgram = '/proc/self/exe';

/**
 * Ends this process at once with this exit code, whatever its threads do. `process.exit` waits until each thread has ended: a thread in a
 * call that hangs, of a token or of the operating system, would keep the process with its keys and its open ports. This function replaces
 * the program of the process instead, which ends all threads. Only for the main thread.
 */
export function endProcess(code: number): never {
  const program = [ownProgram, process.execPath].find((path) => existsSync(path));
  if (program !== undefined && process.execve !== undefined) {
    process.emit('exit', code);
    const env = { ...process.env, NODE_OPTIONS: '' };
    process.execve(program, [process.argv0, '--eval', `process.exit(${code})`], env);
  }
  process.exit(code);
}
