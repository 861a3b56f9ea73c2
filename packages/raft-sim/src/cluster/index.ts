export { Coverage, type CoverageEvent, coverageEvents } from './checks/coverage.ts';
export { formatLine, Trace, type TraceLine } from './checks/trace.ts';
export { holds, Violation } from './checks/violation.ts';
export { type Action, actionKinds, configOf, type Profile, type SimConfig } from './config/config.ts';
export { type ExtraFaults, type ExtraKind, extraKinds } from './config/extra-faults.ts';
export type { SeparateFaults } from './config/separate-faults.ts';
export { withExtraFaults } from './config/with-extra-faults.ts';
export type { Incarnation, Member } from './node/member.ts';
export { disturb, type RunResult, runSimulation, runSimulationOn } from './run.ts';
export { shrink } from './shrink.ts';
export type { Command, MachineResult } from './storage/command.ts';
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
} from './storage/storage.ts';
export { Cluster } from './world/cluster.ts';
