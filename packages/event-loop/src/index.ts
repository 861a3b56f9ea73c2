export { FairQueue, type Taken } from './fair-queue.ts';
export { inPieces } from './in-pieces.ts';
export { NamedLocks } from './named-locks.ts';
export { accessTurns, nextTurn, turnEnd } from './next-turn.ts';
export { oneAtATime } from './one-at-a-time.ts';
export {
  checkJsonLimits,
  endOfJsonString,
  type JsonRules,
  parseJsonInSlices,
  pieceValuesMax,
  plainCharsMax,
  tooManyPlain,
} from './parse-json.ts';
export { RepeatingTask } from './repeating-task.ts';
export { SerialQueue } from './serial-queue.ts';
export { sharedRun } from './shared-run.ts';
export { runAtOnce, runInSlices, type Steps, sorted } from './steps.ts';
export { TaskLimit } from './task-limit.ts';
export { TimeSlice } from './time-slice.ts';
export { Turns, turns } from './turns.ts';
