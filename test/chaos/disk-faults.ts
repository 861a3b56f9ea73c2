// Faults of a node's disk, injected into its system calls by strace while it runs.
import type { Fault } from '../cluster/harness/faults.ts';
import type { LiveNode } from '../cluster/harness/live-node.ts';
import { attachStrace, type Detach } from '../cluster/harness/strace.ts';

/** Exit code of a node whose storage failed. */
const storageFailed = 74;
const tracers = new Map<LiveNode, Detach>();

/** @param expression - value of strace's `inject=`: system calls and their fault */
async function inject(victim: LiveNode, expression: string): Promise<void> {
  const calls = expression.slice(0, expression.indexOf(':'));
  tracers.set(victim, await attachStrace(victim, ['-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${expression}`]));
}

async function detach(victim: LiveNode): Promise<void> {
  const end = tracers.get(victim);
  tracers.delete(victim);
  await end?.();
}

/** Waits until the node has stopped because its disk failed, then starts the node again with its data. */
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

/** Detaches every strace, so that a failed run leaves no process. */
export async function detachAll(): Promise<void> {
  await Promise.all([...tracers.keys()].map(detach));
}
