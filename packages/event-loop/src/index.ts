export { FairQueue } from './fair-queue.ts';
export { inPieces } from './in-pieces.ts';
export { NamedLocks } from './named-locks.ts';
export { accessTurns, nextTurn } from './next-turn.ts';
export { endOfJsonString, type JsonRules, parseJsonInSlices, pieceValuesMax } from './parse-json.ts';
export { SerialQueue } from './serial-queue.ts';
export { runAtOnce, runInSlices, type Steps, sorted } from './steps.ts';
export { TimeSlice } from './time-slice.ts';
export { Turns, turns } from './turns.ts';
