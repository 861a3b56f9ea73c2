// Plays simulated runs: with the workspace's own packages, or with copies that have a fault in one of them.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { RunResult, SimConfig, TraceLine } from '../packages/raft-sim/src/cluster/index.ts';
import type { Job } from './sim-pool.ts';

/** The folder of the workspace's own packages. */
export const ownPackages = join(import.meta.dirname, '../packages');

type Simulator = typeof import('../packages/raft-sim/src/cluster/index.ts');
type StorageProfile = typeof import('../packages/storage-fsm/test/sim/play.ts');

export interface Player extends Pick<Simulator, 'shrink'> {
  configOf(job: Job): SimConfig;
  play(config: SimConfig, listener?: (line: TraceLine) => void): Promise<RunResult>;
}

export async function playerOn(packages: string): Promise<Player> {
  const load = (file: string) => import(pathToFileURL(join(packages, file)).href);
  const { configOf, runSimulation, shrink, withExtraFaults }: Simulator = await load('raft-sim/src/cluster/index.ts');
  return {
    configOf({ seed, profile, events, extra }) {
      const config = configOf(seed, profile, events);
      return extra === true ? withExtraFaults(config) : config;
    },
    shrink,
    async play(config, listener) {
      if (config.profile !== 'storage') return runSimulation(config, listener);
      const { playStorage }: StorageProfile = await load('storage-fsm/test/sim/play.ts');
      return playStorage(config, listener);
    },
  };
}
