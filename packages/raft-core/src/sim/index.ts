export * from './cluster/index.ts';
export { MemoryDisk, type MemoryDiskOptions } from './memory-disk.ts';
export { type LogOperation, MemoryLog, type MemoryLogOptions } from './memory-log.ts';
export { type HistoryResult, MemoryState, MemoryStateMachine, type MemoryStateMachineOptions } from './memory-state-machine.ts';
export { type Scheduler, SimClock, SimProcess } from './sim-clock.ts';
export { type Crash, SimNode, type SimNodeOptions, type SimRun } from './sim-node.ts';
export { SimRandom } from './sim-random.ts';
