export { Coverage, type CoverageEvent, coverageEvents, extraCoverageEvents } from './checks/coverage.ts';
export { formatLine, Trace, type TraceLine } from './checks/trace.ts';
export { holds, Violation } from './checks/violation.ts';
export type { Command } from './clients/command.ts';
export { Cluster } from './cluster.ts';
export { type Action, actionKinds, configOf, type Profile, type SimConfig } from './config.ts';
export { type ExtraFaults, type ExtraKind, extraKinds, withExtraFaults } from './faults/extra-faults.ts';
export type { Incarnation, Member } from './node/member.ts';
export { disturb, type RunResult, runSimulation, runSimulationOn } from './run.ts';
export { shrink } from './shrink.ts';
export type { MachineResult } from './storage/machine.ts';
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
