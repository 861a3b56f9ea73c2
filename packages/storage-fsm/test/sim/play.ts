import { type RunResult, runSimulationOn, type SimConfig, type TraceLine } from '@transitd/raft-sim';
import { SegmentStorage } from './segment-storage.ts';

/** Runs after all promise callbacks, which wait for nothing outside the simulation. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Plays a run of the profile `storage`: every node on the real log and state machine. */
export const playStorage = (config: SimConfig, listener?: (line: TraceLine) => void): Promise<RunResult> =>
  runSimulationOn((node) => new SegmentStorage(node), config, listener === undefined ? { settle } : { settle, listener });
