// Plays simulated runs: with the workspace's own packages, or with copies that have a fault in one of them.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { RunResult, SimConfig, TraceLine } from '../packages/raft-core/src/sim/cluster/index.ts';
import type { Job } from './sim-pool.ts';

export interface Folders {
  readonly raftCore: string;
  readonly storage: string;
}

export const ownFolders: Folders = {
  raftCore: join(import.meta.dirname, '../packages/raft-core'),
  storage: join(import.meta.dirname, '../packages/storage-fsm'),
};

type Simulator = typeof import('../packages/raft-core/src/sim/cluster/index.ts');
type StorageProfile = typeof import('../packages/storage-fsm/test/sim/play.ts');

export interface Player extends Pick<Simulator, 'shrink'> {
  configOf(job: Job): SimConfig;
  play(config: SimConfig, listener?: (line: TraceLine) => void): Promise<RunResult>;
}

export async function playerOn({ raftCore, storage }: Folders): Promise<Player> {
  const load = (folder: string, file: string) => import(pathToFileURL(join(folder, file)).href);
  const { configOf, runSimulation, shrink, withExtraFaults }: Simulator = await load(raftCore, 'src/sim/cluster/index.ts');
  return {
    configOf({ seed, profile, events, extra }) {
      const config = configOf(seed, profile, events);
      return extra === true ? withExtraFaults(config) : config;
    },
    shrink,
    async play(config, listener) {
      if (config.profile !== 'storage') return runSimulation(config, listener);
      const { playStorage }: StorageProfile = await load(storage, 'test/sim/play.ts');
      return playStorage(config, listener);
    },
  };
}
