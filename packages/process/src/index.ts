export { leavesCoreFiles, warnOfCoreDumps } from './core-dumps.ts';
export { exitCode, StartError } from './exit.ts';
export { LogLimit } from './log-limit.ts';
export type { Logger } from './logger.ts';
export { type BarrierOperation, type NodeObserver, nobody } from './node-observer.ts';
export { requireOwn, requireOwnerOnly, requireWrittenByOwner } from './owner-only.ts';
export { reasonOf } from './reason.ts';
export { version } from './version.ts';
