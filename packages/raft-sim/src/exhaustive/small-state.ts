import type { State } from './level.ts';

/** The layout of a small cluster's state; after it follow the local state of each node, by id, and the messages under way, ascending. */
export const HISTORY = 0;
export const PROPOSALS = 1;
export const PASSES = 2;
export const NODES = 3;

/** Returns 0 after the end. */
export const numberAt = (state: State, at: number): number => state[at] ?? 0;

/** Keeps the numbers after `begin` ascending. */
export function insert(state: number[], number: number, begin: number): void {
  let at = state.length;
  for (; at > begin && numberAt(state, at - 1) > number; at--) state[at] = numberAt(state, at - 1);
  state[at] = number;
}

/** Compares number by number; negative if the first is smaller. If one begins with the other, the shorter is smaller. */
export function compare(one: State, other: State): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at++) {
    const difference = numberAt(one, at) - numberAt(other, at);
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}
