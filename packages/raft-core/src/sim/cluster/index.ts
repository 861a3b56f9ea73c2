export { type Action, actionKinds, configOf, type Profile, type SimConfig } from './config.ts';
export { Coverage, type Situation, situations } from './coverage.ts';
export { type RunResult, runSimulation } from './run.ts';
export { shrink } from './shrink.ts';
export { formatLine, type TraceLine } from './trace.ts';
