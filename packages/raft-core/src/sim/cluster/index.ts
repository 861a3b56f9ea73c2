export { Cluster } from './cluster.ts';
export type { Command } from './command.ts';
export { type Action, actionKinds, configOf, type Profile, type SimConfig } from './config.ts';
export { Coverage, extraSituations, type Situation, situations } from './coverage.ts';
export { type ExtraFaults, type ExtraKind, extraKinds, withExtraFaults } from './extra-faults.ts';
export type { MachineResult } from './machine.ts';
export type { Member, MemberRun } from './member.ts';
export { disturb, type RunResult, runSimulation, runSimulationOn } from './run.ts';
export { shrink } from './shrink.ts';
export {
  DiskError,
  type DiskPart,
  type DurableLog,
  type NodeStorage,
  type OpenStorage,
  type SimMachine,
  type SnapshotStreams,
  type SnapshotWire,
  type StorageMaker,
  type StorageRun,
} from './storage.ts';
export { formatLine, Trace, type TraceLine } from './trace.ts';
export { holds, Violation } from './violation.ts';
