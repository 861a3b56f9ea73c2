// One thread of the simulator's pool: takes seeds, plays each to its end, and sends the outcome.
import { parentPort, workerData } from 'node:worker_threads';
import { playerOn } from './sim-player.ts';
import type { Job, Outcome } from './sim-pool.ts';

const { configOf, play } = await playerOn(workerData.packages);

parentPort?.on('message', async (jobs: readonly Job[]) => {
  const outcomes: Outcome[] = [];
  for (const job of jobs) {
    const { coverage, ...result } = await play(configOf(job));
    outcomes.push({
      ...result,
      profile: job.profile,
      extra: job.extra === true,
      coverage: [...coverage].filter(([, count]) => count > 0),
    });
  }
  parentPort?.postMessage(outcomes);
});
