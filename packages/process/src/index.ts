export { leavesCoreFiles, warnOfCoreDumps } from './core-dumps.ts';
export { exitCode, StartError } from './exit.ts';
export { LogLimit } from './log-limit.ts';
export type { Logger } from './logger.ts';
export { type BarrierOperation, type NodeObserver, noObserver } from './node-observer.ts';
export { requireOwner, requireOwnerOnly, requireOwnerWritable } from './owner-only.ts';
export { reasonOf } from './reason.ts';
export type { Span, SpanName, TraceHeaders, Tracer } from './tracing.ts';
export { version } from './version.ts';
