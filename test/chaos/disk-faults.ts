// Faults of a node's disk, injected into its system calls by strace while it runs.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Fault } from '../cluster/faults.ts';
import type { LiveNode } from '../cluster/live-node.ts';
import { until } from '../cluster/until.ts';

/** Exit code of a node whose storage failed. */
const storageFailed = 74;
const tracers = new Map<LiveNode, ChildProcess>();

/** @param expression - of strace's `inject=`: the calls, and what happens to them */
async function inject(victim: LiveNode, expression: string): Promise<void> {
  const { pid } = victim.server.child;
  const calls = expression.slice(0, expression.indexOf(':'));
  const args = ['-f', '-p', String(pid), '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${expression}`];
  const tracer = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  tracers.set(victim, tracer);
  let said = '';
  tracer.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  await until(
    `strace is attached to ${victim.name}`,
    () => {
      if (tracer.exitCode !== null) throw new Error(`strace ended: ${said}`);
      return said.includes('attached');
    },
    { explain: () => said },
  );
}

async function detach(victim: LiveNode): Promise<void> {
  const tracer = tracers.get(victim);
  tracers.delete(victim);
  if (tracer === undefined || tracer.exitCode !== null || tracer.signalCode !== null) return;
  const ended = once(tracer, 'exit');
  tracer.kill('SIGINT');
  await ended;
}

/** The node must stop by itself, as a node with a failing disk has to; then it starts again on what it has synced. */
async function restartedAfterFailure(victim: LiveNode): Promise<void> {
  const { code, signal } = await victim.server.exited;
  await detach(victim);
  if (code !== storageFailed) throw new Error(`${victim.name} ended with ${code ?? signal} after a failed sync`);
  await victim.start();
}

const slowSync = (ms: number): Fault => ({
  what: `needs ${ms} ms for a sync`,
  strike: (_, victim) => inject(victim, `fdatasync,fsync:delay_enter=${ms * 1000}`),
  mend: (_, victim) => detach(victim),
});

const failingSync = (error: string): Fault => ({
  what: `has a sync fail with ${error}`,
  strike: (_, victim) => inject(victim, `fdatasync,fsync:error=${error}`),
  mend: (_, victim) => restartedAfterFailure(victim),
});

export const diskFaults: readonly Fault[] = [
  slowSync(50),
  slowSync(600),
  slowSync(4_000),
  failingSync('EIO'),
  failingSync('ENOSPC'),
];

/** Ends what is still attached, so that a failed run leaves nothing behind. */
export async function detachAll(): Promise<void> {
  await Promise.all([...tracers.keys()].map(detach));
}
