import type { State } from './explore.ts';

/** Where the state of a small cluster has what; then come the local state of each node, by id, and the messages on their way, ascending. */
export const PAST = 0;
export const PROPOSALS = 1;
export const PASSES = 2;
export const NODES = 3;

/** 0 behind the end. */
export const numberAt = (state: State, at: number): number => state[at] ?? 0;

/** Keeps what lies behind `begin` ascending. */
export function insert(state: number[], number: number, begin: number): void {
  let at = state.length;
  for (; at > begin && numberAt(state, at - 1) > number; at--) state[at] = numberAt(state, at - 1);
  state[at] = number;
}

/** Below 0 where the first comes before the second, number by number; of two that begin alike the shorter one. */
export function compare(one: State, other: State): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const difference = numberAt(one, at) - numberAt(other, at);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}
