// One thread of the simulator's pool: takes seeds, plays each to its end, answers with what became of it.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { Job, Outcome } from './sim-pool.ts';

const entry = pathToFileURL(join(workerData.packageFolder, 'src/sim/cluster/index.ts')).href;
const { configOf, runSimulation }: typeof import('../packages/raft-core/src/sim/cluster/index.ts') = await import(entry);

parentPort?.on('message', (jobs: readonly Job[]) => {
  const outcomes = jobs.map(({ seed, profile, events }): Outcome => {
    const { coverage, ...result } = runSimulation(configOf(seed, profile, events));
    return { ...result, profile, coverage: [...coverage].filter(([, count]) => count > 0) };
  });
  parentPort?.postMessage(outcomes);
});
