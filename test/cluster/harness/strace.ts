// Watches the system calls of a running process, or injects faults into them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { until } from './until.ts';

/** A process under test. */
export interface Traced {
  readonly name: string;
  readonly pid: number;
}

/** Ends the tracing; the process continues if it still runs. May be called again. */
export type Detach = () => Promise<void>;

/**
 * Attaches strace to all threads of the process; resolves when it is attached.
 * @param args - of strace: system calls, faults, output
 * @throws if strace ends before it is attached, or does not attach in time
 */
export async function attachStrace({ name, pid }: Traced, args: readonly string[]): Promise<Detach> {
  const tracer = spawn('strace', ['-f', '-p', String(pid), ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(tracer, 'exit');
  let said = '';
  tracer.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await until(
    `strace is attached to ${name}`,
    () => {
      if (tracer.exitCode !== null) throw new Error(`strace ended: ${said}`);
      return said.includes('attached');
    },
    { explain: () => said },
  );
  return async () => {
    if (tracer.exitCode === null && tracer.signalCode === null) tracer.kill('SIGINT');
    await ended;
  };
}
