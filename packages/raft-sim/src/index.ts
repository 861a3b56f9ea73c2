export * from './cluster/index.ts';
export { type LogOperation, MemoryDisk, type MemoryDiskOptions, MemoryLog, type MemoryLogOptions } from './fakes/memory-disk.ts';
export {
  type HistoryResult,
  MemoryState,
  MemoryStateMachine,
  type MemoryStateMachineOptions,
} from './fakes/memory-state-machine.ts';
export { type Scheduler, SimClock, SimProcess } from './fakes/sim-clock.ts';
export { type Crash, SimNode, type SimNodeOptions, type SimRun } from './fakes/sim-node.ts';
export { SimRandom } from './fakes/sim-random.ts';
export { checkLinearizable, type Verdict } from './history/linearizable.ts';
export type { KeyKind } from './history/model.ts';
export type { Answer, Operation, Request } from './history/operation.ts';
export { withSeenEffects } from './history/seen-effects.ts';
